// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_layouts.h"

#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "kernels/bench/provenance.h"
#include "train/bench/layouts.h"
#include "train/cli/bench_file.h"
#include "train/cli/bench_options.h"
#include "train/config/usage_error.h"
#include "train/trainer/check_replicas.h"

namespace gradring::train {
namespace {

using bench::Layout;
using bench::LayoutRow;

/// Of a step, of all ranks together: up to four ranks have equal shares, and each of them whole shards.
constexpr std::int64_t kGlobalBatch = 24;
constexpr std::int64_t kShard = 3;
constexpr int kMostRanks = 4;

struct Options {
  std::int64_t steps = 20;
  int ranks = 4;
  std::string json;
};

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring bench layouts"};
  const CommandOption own[] = {
      count_option("steps", "of each training, of which FP16 skips a few [20]", 8, options.steps),
      count_option("ranks", "at most, up to 4 [4]", 1, options.ranks), json_option(options.json)};
  line.options.insert(line.options.end(), std::begin(own), std::end(own));
  return line;
}

std::string help_text() {
  Options unused;
  return fmt::format(
      "gradring bench layouts: the same training, {} samples of digits a step, by every combination of ranks, passes\n"
      "(accumulation), ZeRO stages and recomputed activations. Ends with an error if one comes out other than it "
      "must:\n"
      "  without --reproducible  gradients to 1e-5, losses to 1e-4; and every bit at all stages of ZeRO, recomputed or "
      "not\n"
      "  with it                 every bit, also of a training that goes on from another layout's checkpoint\n\n"
      "Options; in brackets the default:\n{}",
      kGlobalBatch, help_of(command_line(unused).options));
}

/// One table: trainings that are all to come out alike.
struct Series {
  const char* title;
  TrainConfig config;
  std::vector<std::int64_t> passes;
};

TrainConfig config_of(const Options& options, const char* precision, bool reproducible) {
  TrainConfig config;
  config.epochs = 1;
  config.steps = options.steps;
  config.global_batch = kGlobalBatch;
  config.precision = precision;
  config.loss_scale = 0x1p29;  // in fp16: the first steps overflow, by every layout alike
  config.reproducible = reproducible;
  if (reproducible) config.shard_size = kShard;
  return config;
}

std::vector<Series> series_of(const Options& options) {
  return {{"sums in floats, FP32", config_of(options, "fp32", false), {1, 2, 3}},
          {"--reproducible, FP32", config_of(options, "fp32", true), {0}},
          {"--reproducible, FP16", config_of(options, "fp16", true), {0}}};
}

std::string passes_text(const Layout& layout) {
  const std::int64_t shards = kGlobalBatch / kShard;
  return fmt::format("{}", layout.passes > 0 ? layout.passes : (shards + layout.ranks - 1) / layout.ranks);
}

void print(const LayoutRow& row) {
  fmt::print("{:>5} {:>6} {:>4} {:>9} {:>14.1e} {:>12.1e}  {:<12}  {:<7} {}\n", row.layout.ranks,
             passes_text(row.layout), row.layout.zero, row.layout.recomputes ? "yes" : "no", row.gradient_error,
             row.loss_error, row.parameters_sha256.substr(0, 12),
             row.resumed_equal ? (*row.resumed_equal ? "equal" : "DIFFERS") : "", row.agrees ? "ok" : "DIFFERS");
}

nlohmann::json to_json(const LayoutRow& row) {
  nlohmann::json json{{"ranks", row.layout.ranks},
                      {"passes", row.layout.passes},
                      {"zero", row.layout.zero},
                      {"recomputes", row.layout.recomputes},
                      {"gradient_error", row.gradient_error},
                      {"loss_error", row.loss_error},
                      {"parameters_sha256", row.parameters_sha256},
                      {"agrees", row.agrees}};
  if (row.resumed_equal) json["resumed_equal"] = *row.resumed_equal;
  return json;
}

std::vector<LayoutRow> run(const Series& series, const Options& options) {
  const auto train_set = data::open_dataset("digits", data::Split::train, "");
  const auto test_set = data::open_dataset("digits", data::Split::test, "");
  const bool exact = series.config.reproducible;
  fmt::print("\n{}\n{:>5} {:>6} {:>4} {:>9} {:>14} {:>12}  {:<12}  {:<7}\n", series.title, "ranks", "passes", "ZeRO",
             "recompute", "gradient error", "loss error", "weights", "resumed");
  const bench::LayoutTrainingSpec spec{.config = series.config,
                                       .train_set = *train_set,
                                       .test_set = *test_set,
                                       .save_at = exact ? options.steps / 2 : 0};
  return bench::compare_layouts(bench::all_layouts(options.ranks, series.passes), spec, {.exact = exact}, print);
}

}  // namespace

void bench_layouts(std::span<const std::string> args) {
  Options options;
  if (read_command_line(command_line(options), args).help) {
    fmt::print("{}", help_text());
    return;
  }
  if (options.ranks > kMostRanks)
    throw UsageError(fmt::format("--ranks is {}, but goes up to {}", options.ranks, kMostRanks));
  const auto provenance = kernels::bench::provenance();
  fmt::print("{}\n{} steps of {} samples\n", kernels::bench::to_string(provenance), options.steps, kGlobalBatch);
  nlohmann::json tables = nlohmann::json::object();
  std::size_t layouts = 0, different = 0;
  for (const Series& series : series_of(options)) {
    for (const LayoutRow& row : run(series, options)) {
      tables[series.title].push_back(to_json(row));
      ++layouts;
      if (!row.agrees) ++different;
    }
  }
  write_bench_file(options.json, "layouts", provenance, {{"steps", options.steps}, {"tables", tables}});
  fmt::print("\n{} layouts, {} differ\n", layouts, different);
  if (different > 0)
    throw ReplicaError(fmt::format("{} of {} layouts do not train as they must: see the table", different, layouts));
}

}  // namespace gradring::train
