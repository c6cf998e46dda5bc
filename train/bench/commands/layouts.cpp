// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/layouts.h"
#include "train/core/trainer/replica.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using bench::Layout;
using bench::LayoutRow;

/// Samples per step over all ranks: divisible among up to four ranks in whole shards.
constexpr std::int64_t kGlobalBatch = 24;
constexpr std::int64_t kShard = 3;
constexpr int kMostRanks = 4;

struct LayoutsBenchOptions {
  std::int64_t steps = 20;
  int ranks = 4;
  CommonBenchOptions common;
};

CommandLine command_line(LayoutsBenchOptions& options) {
  return {
      .command = "gradring bench layouts",
      .purpose =
          "the same training in every layout of ranks, micro-batches, ZeRO stages and activation checkpointing, "
          "compared",
      .options = with_common_options(
          {count_option("steps", "steps of each training, of which fp16 skips a few (default 20)", 8, options.steps),
           nprocs_option("largest number of ranks, up to 4 (default 4)", "ranks", options.ranks)},
          options.common),
      .notes =
          "A layout that differs is an error. Without --reproducible, gradients must agree to 1e-5, losses to "
          "1e-4, and all ZeRO stages bit for bit; with it, all layouts bit for bit, also when resumed from another "
          "layout's checkpoint."};
}

/// One table: trainings whose results must agree.
struct Series {
  const char* title;
  TrainConfig config;
  std::vector<std::int64_t> passes;
};

TrainConfig config_of(const LayoutsBenchOptions& options, Precision precision, bool reproducible) {
  TrainConfig config;
  config.epochs = 1;
  config.steps = options.steps;
  config.global_batch = kGlobalBatch;
  config.precision = precision;
  config.loss_scale = 0x1p29;  // in fp16 the first steps overflow in every layout
  config.reproducible = reproducible;
  if (reproducible) config.shard_size = kShard;
  return config;
}

std::vector<Series> series_of(const LayoutsBenchOptions& options) {
  return {{"sums in floats, FP32", config_of(options, Precision::fp32, false), {1, 2, 3}},
          {"--reproducible, FP32", config_of(options, Precision::fp32, true), {0}},
          {"--reproducible, FP16", config_of(options, Precision::fp16, true), {0}}};
}

std::string passes_text(const Layout& layout) {
  const std::int64_t shards = kGlobalBatch / kShard;
  return fmt::format("{}", layout.passes > 0 ? layout.passes : (shards + layout.ranks - 1) / layout.ranks);
}

void print_row(const LayoutRow& row) {
  print_text("{:>5} {:>6} {:>4} {:>9} {:>14.1e} {:>12.1e}  {:<12}  {:<7} {}\n", row.layout.ranks,
             passes_text(row.layout), row.layout.zero, row.layout.recomputes ? "yes" : "no", row.gradient_error,
             row.loss_error, row.parameters_sha256.substr(0, 12),
             row.resumed_equal ? (*row.resumed_equal ? "equal" : "DIFFERS") : "", row.agrees ? "ok" : "DIFFERS");
}

nlohmann::json row_json(const LayoutRow& row) {
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

std::vector<LayoutRow> run(const Series& series, const LayoutsBenchOptions& options) {
  const auto train_set = data::open_dataset("digits", data::Split::train, "");
  const auto test_set = data::open_dataset("digits", data::Split::test, "");
  const bool exact = series.config.reproducible;
  print_text("\n{}\n{:>5} {:>6} {:>4} {:>9} {:>14} {:>12}  {:<12}  {:<7}\n", series.title, "ranks", "passes", "ZeRO",
             "recompute", "gradient error", "loss error", "weights", "resumed");
  const bench::LayoutTrainingSpec spec{.config = series.config,
                                       .train_set = *train_set,
                                       .test_set = *test_set,
                                       .save_at = exact ? options.steps / 2 : 0};
  return bench::compare_layouts(bench::all_layouts(options.ranks, series.passes), spec, {.exact = exact}, print_row);
}

/// What differs between layouts, as measurements: the same in every run of one build.
std::vector<bench::BenchMeasurement> errors_of(const LayoutRow& row, const Series& series) {
  const bench::MeasurementKey key = {{"series", series.title},
                                     {"ranks", std::to_string(row.layout.ranks)},
                                     {"passes", passes_text(row.layout)},
                                     {"zero", std::to_string(row.layout.zero)},
                                     {"recomputes", row.layout.recomputes ? "yes" : "no"}};
  return {{.key = bench::joined(key, {{"error", "gradient"}}), .unit = "share", .samples = {row.gradient_error}},
          {.key = bench::joined(key, {{"error", "loss"}}), .unit = "loss", .samples = {row.loss_error}}};
}

void list(const LayoutsBenchOptions& options) {
  for (const Series& series : series_of(options)) {
    std::vector<std::string> lines;
    for (const Layout& layout : bench::all_layouts(options.ranks, series.passes))
      lines.push_back(fmt::format("ranks {}, passes {}, ZeRO {}{}", layout.ranks, passes_text(layout), layout.zero,
                                  layout.recomputes ? ", activations recomputed" : ""));
    print_list(std::string(series.title) + ":", lines);
  }
}

void run(LayoutsBenchOptions& options) {
  if (options.ranks > kMostRanks)
    throw UsageError(fmt::format("--nprocs is {}, but must be at most {}", options.ranks, kMostRanks));
  if (options.common.list) return list(options);
  bench::BenchRun bench_run("layouts", options.common.files);
  print_text("{}\n{} steps of {} samples\n", bench_run.title(), options.steps, kGlobalBatch);
  nlohmann::json tables = nlohmann::json::object();
  std::size_t layouts = 0, different = 0;
  for (const Series& series : series_of(options)) {
    for (const LayoutRow& row : run(series, options)) {
      tables[series.title].push_back(row_json(row));
      for (bench::BenchMeasurement& each : errors_of(row, series)) bench_run.add(std::move(each));
      ++layouts;
      if (!row.agrees) ++different;
    }
  }
  bench_run.finish({{"steps", options.steps}, {"tables", tables}});
  print_text("\n{} layouts, {} differ\n", layouts, different);
  if (different > 0)
    throw ReplicaError(fmt::format("{} of {} layouts differ from the reference: see the table", different, layouts));
}

}  // namespace

const Command kBenchLayouts =
    make_command<LayoutsBenchOptions>("layouts", "agreement of all layouts of ranks and ZeRO");

}  // namespace gradring::train
