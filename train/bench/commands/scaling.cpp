// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <numeric>
#include <string>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "kernels/base/processors.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/commands/training_output.h"
#include "train/bench/measured_training.h"
#include "train/bench/training_page.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train {
namespace {

/// More ranks than this say nothing about one machine.
constexpr std::int64_t kMostScaledRanks = 256;
/// Samples of a step in strong scaling that a common multiple of the numbers of ranks may need.
constexpr std::int64_t kMostStrongBatch = 1 << 20;

struct ScalingBenchOptions {
  TrainingBenchOptions output;
  IntegerRange ranks{.least = 1, .most = 2};
  std::int64_t batch_size = 128;
};

/// "1..4" or "4".
IntegerRange parse_ranks(std::string_view option, std::string_view text) {
  const std::size_t dots = text.find("..");
  const IntegerRange range{.least = 1, .most = kMostScaledRanks};
  IntegerRange ranks{.least = parse_integer(option, text.substr(0, dots), range)};
  ranks.most = dots == text.npos ? ranks.least : parse_integer(option, text.substr(dots + 2), range);
  if (ranks.most < ranks.least) throw bad_value(option, text, "must be a range that ascends, such as 1..4");
  return ranks;
}

CommandLine command_line(ScalingBenchOptions& options) {
  return {.command = "gradring bench scaling",
          .purpose = "strong and weak scaling of data-parallel training over ranks",
          .options = training_bench_options(
              options.output,
              {value_option("ranks", "A..B", "numbers of ranks (default 1..2)", parse_ranks, options.ranks),
               count_option("batch-size",
                            "samples per rank and step in weak scaling, and of the largest number of ranks in "
                            "strong scaling, raised until all divide a step (default 128)",
                            1, options.batch_size)}),
          .notes =
              "Weak scaling keeps the samples of each rank, strong scaling those of a step. One thread per rank. The "
              "row of one rank is what others scale from; `gradring bench parallel` explains the columns."};
}

/// Divisible by every number of ranks, near ranks * batch.
///
/// Errors    UsageError if that needs more than kMostStrongBatch samples.
std::int64_t strong_batch(const ScalingBenchOptions& options) {
  std::int64_t common = 1;
  for (std::int64_t ranks = options.ranks.least; ranks <= options.ranks.most; ++ranks) {
    common = std::lcm(common, ranks);
    if (common > kMostStrongBatch)
      throw UsageError(fmt::format(
          "--ranks is {}..{}, but no step of at most {} samples can be divided by {} and all numbers before: "
          "use a shorter range",
          options.ranks.least, options.ranks.most, kMostStrongBatch, ranks));
  }
  return (options.batch_size * options.ranks.most + common - 1) / common * common;
}

std::vector<bench::TrainingLayout> layouts_of(const ScalingBenchOptions& options) {
  std::vector<bench::TrainingLayout> layouts;
  const std::int64_t batch = strong_batch(options);
  for (const bool strong : {true, false})
    for (std::int64_t ranks = options.ranks.least; ranks <= options.ranks.most; ++ranks)
      layouts.push_back({.name = fmt::format("{}, {} rank{}", strong ? "strong" : "weak", ranks, ranks == 1 ? "" : "s"),
                         .series = strong ? "strong scaling" : "weak scaling",
                         .ranks = static_cast<int>(ranks),
                         .global_batch = strong ? batch : options.batch_size * ranks});
  return layouts;
}

void run(ScalingBenchOptions& options) {
  const bench::TrainingTask& task = options.output.task;
  if (options.output.list) return list_layouts(layouts_of(options), task);
  const auto train_set = data::open_dataset(task.dataset, data::Split::train, task.data_dir);
  bench::BenchRun bench_run = begin_bench("scaling", options.output);
  bench::TrainingTable table{
      .title = "strong and weak scaling",
      .note = fmt::format("{} epoch{} of {} samples of {}{}; strong: {} samples a step, weak: {} a rank", task.epochs,
                          task.epochs == 1 ? "" : "s", train_set->size(), task.dataset,
                          task.steps > 0 ? fmt::format(", {} steps at most", task.steps) : "", strong_batch(options),
                          options.batch_size),
      .provenance = kernels::bench::provenance(),
      .machine_cores = usable_processors()};
  if (options.ranks.most > table.machine_cores)
    table.remarks.push_back(fmt::format("{} ranks share {} cores.", options.ranks.most, table.machine_cores));
  const RunFolder folder;
  std::vector<bench::Contestant> contestants;
  for (const bench::TrainingLayout& layout : layouts_of(options))
    contestants.push_back(bench::our_contestant(layout, task, folder.path()));
  table.rows = bench::measure_rounds(contestants, static_cast<int>(options.output.rounds));
  write_table(bench_run, table, options.output);
  if (!options.output.html_file.empty()) write_named_file(options.output.html_file, bench::scaling_html(table));
  bench::write_scaling_plots(table, options.output.plots);
}

}  // namespace

const Command kBenchScaling = make_command<ScalingBenchOptions>("scaling", "strong and weak scaling over ranks");

}  // namespace gradring::train
