// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/base/processors.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/measured_training.h"
#include "train/bench/pytorch_peer.h"
#include "train/bench/training_table.h"
#include "train/core/doctor/find_python.h"
#include "train/core/setup/named_output.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/command_line.h"
#include "train/options/commands.h"
#include "train/options/parse_value.h"
#include "train/options/print_text.h"
#include "train/options/shell_words.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using bench::Contestant;
using bench::TrainingLayout;

/// What `bench parallel` and `bench scaling` train, and where their results go.
struct TrainingBenchOptions {
  bench::TrainingTask task;
  std::int64_t rounds = 1;
  std::string json_file;  ///< empty: none
  Replace replace = Replace::ours;
  bool list = false;  ///< name what would be trained, and train nothing
};

/// --dataset, --data-dir, then `more`, then --epochs, --steps, --rounds, --list and the file.
std::vector<Option> training_bench_options(TrainingBenchOptions& options, std::vector<Option> more) {
  std::vector<Option> all = dataset_options(options.task.data, std::move(more));
  all.insert(
      all.end(),
      {text_option("device", "auto|cpu|cuda", "compute device of every row (default cpu)", options.task.device),
       {.name = "simulate-gpu",
        .value = "none",
        .help = "only none: a simulated GPU has no times to compare (default none)",
        .read =
            [](std::string_view text) {
              if (text != "none")
                throw UsageError(
                    fmt::format("--simulate-gpu is '{}', but this benchmark compares times, which a "
                                "simulated GPU does not have: use gradring train",
                                text));
            }},
       count_option("epochs", "epochs of each training (default 1)", 1, options.task.epochs),
       count_option("steps", "steps after which each training ends; 0: after the epochs (default 0)", 0,
                    options.task.steps),
       count_option("rounds", "trainings of each row, alternating; medians are shown (default 1)", 1, options.rounds),
       switch_option("list", "list of what would be trained, with its command; no training", options.list),
       json_file_option(options.json_file),
       force_option(options.replace)});
  return all;
}

/// Prints a line for each layout: its name, and the command that trains it. Says why a GPU is missing that --device
/// cuda would use.
void list_layouts(std::span<const TrainingLayout> layouts, const bench::TrainingTask& task) {
  std::size_t width = 0;
  for (const TrainingLayout& layout : layouts) width = std::max(width, layout.name.size());
  std::vector<std::string> lines;
  for (const TrainingLayout& layout : layouts)
    lines.push_back(
        fmt::format("{:<{}}  gradring {}", layout.name, width, shell_command(bench::command_of(layout, task))));
  print_list("trainings:", lines);
  if (task.device != "cuda") return;
  if (const std::string missing = missing_gpu(); !missing.empty())
    print_text("--device cuda is not available here: {}\n", missing);
}

/// A benchmark of trainings.
struct TrainingBenchSpec {
  std::string name;   ///< "parallel"
  std::string title;  ///< of the table
  std::string note;   ///< what is trained, besides dataset and epochs
  std::vector<TrainingLayout> layouts;
  std::vector<std::string> remarks{};
  /// Those of another framework, which follow ours; may add remarks. `folder`: for their files. Empty: none.
  std::function<std::vector<Contestant>(const data::Dataset& train_set, const std::filesystem::path& folder,
                                        std::vector<std::string>& remarks)>
      peers{};
};

/// Trains all in turns, prints the table, and writes the JSON file.
void bench_trainings(const TrainingBenchSpec& spec, const TrainingBenchOptions& options) {
  bench::BenchRun run(spec.name, {.json = options.json_file, .csv = "", .replace = options.replace});
  const bench::TrainingTask& task = options.task;
  const auto train_set = open_chosen(task.data);
  bench::TrainingTable table{
      .title = spec.title,
      .note = fmt::format("{} epoch{} of {} samples of {}{}; {}", task.epochs, task.epochs == 1 ? "" : "s",
                          train_set->size(), task.data.dataset,
                          task.steps > 0 ? fmt::format(", {} steps at most", task.steps) : "", spec.note),
      .machine_cores = usable_processors(),
      .rows = {},
      .remarks = spec.remarks};
  {
    const RunFolder folder;
    std::vector<Contestant> contestants;
    for (const TrainingLayout& layout : spec.layouts)
      contestants.push_back(bench::our_contestant(layout, task, folder.path()));
    if (spec.peers)
      std::ranges::move(spec.peers(*train_set, folder.path(), table.remarks), std::back_inserter(contestants));
    table.rows = bench::measure_rounds(contestants, static_cast<int>(options.rounds));
  }  // PyTorch's processes end, and count as ours and not as other programs
  print_text("{}\n{}\n\n{}", run.title(), table.note, bench::to_text(table));
  for (const bench::TrainingRow& row : table.rows) {
    bench::BenchMeasurement measured{.key = {{"dataset", task.data.dataset},
                                             {"epochs", std::to_string(task.epochs)},
                                             {"steps", std::to_string(task.steps)},
                                             {"device", task.device},
                                             {"global_batch", std::to_string(row.layout.global_batch)},
                                             {"framework", row.framework},
                                             {"name", row.layout.name}},
                                     .unit = "s"};
    for (const bench::Measurement& round : row.rounds) measured.samples.push_back(round.seconds);
    run.add(std::move(measured));
  }
  run.finish(bench::to_json(table, task));
}

struct ParallelBenchOptions {
  TrainingBenchOptions output;
  int ranks = 2;
  std::int64_t global_batch = 256;
  std::int64_t passes = 4;
  bool without_pytorch = false;
};

CommandLine command_line(ParallelBenchOptions& options) {
  return {
      .command = "gradring bench parallel",
      .purpose = "the same training as one process, DataParallel, DDP, ZeRO, in fp16 and accumulated, and by PyTorch",
      .options = training_bench_options(
          options.output,
          {count_option("nprocs", "ranks, or devices of one process (default 2)", 1, options.ranks),
           count_option("global-batch", "samples of a step in every row (default 256)", 1, options.global_batch),
           count_option("accumulate", "micro-batches of the accumulated rows (default 4)", 2, options.passes),
           switch_option("no-pytorch", "omission of PyTorch's rows", options.without_pytorch)}),
      .notes =
          "Every row trains the default model with Adam, one thread per rank or device. Columns: scaling is samples/s "
          "as a share of what the row of one core has, times the cores of the row; comm is the share of time in which "
          "ranks, or the first device, wait for others; CPU s is CPU seconds an epoch, and CPU % their share of "
          "wall time and all cores of the machine; plan and peak are of the device of rank 0, or of the first device; "
          "others is the memory of further devices; RSS is of all processes, shared pages counted in each. "
          "GRADRING_PYTHON names a Python that imports torch; else each python3 on PATH is tried."};
}

std::vector<TrainingLayout> layouts_of(const ParallelBenchOptions& options) {
  const auto passes = options.passes;
  const auto batch = options.global_batch;
  std::vector<TrainingLayout> layouts = {{.name = "one process"},
                                         {.name = "one process, fp16", .precision = "fp16"},
                                         {.name = fmt::format("one process, accumulate {}", passes), .passes = passes}};
  if (const int n = options.ranks; n > 1) {
    const auto add = [&layouts](TrainingLayout layout) { layouts.push_back(std::move(layout)); };
    add({.name = fmt::format("one process, {} threads", n), .threads = n});
    add({.name = "DataParallel", .devices = n});
    add({.name = "DataParallel, fp16", .devices = n, .precision = "fp16"});
    add({.name = "DDP", .ranks = n});
    add({.name = "DDP, fp16", .ranks = n, .precision = "fp16"});
    add({.name = fmt::format("DDP, accumulate {}", passes), .ranks = n, .passes = passes});
    for (int stage = 1; stage <= 3; ++stage) add({.name = fmt::format("ZeRO {}", stage), .ranks = n, .zero = stage});
  }
  for (TrainingLayout& layout : layouts) layout.global_batch = batch;
  return layouts;
}

void list_rows(const ParallelBenchOptions& options) {
  list_layouts(layouts_of(options), options.output.task);
  if (options.without_pytorch) return;
  const std::string data_parallel = options.ranks > 1 ? " and with DDP over gloo" : "";
  print_text("PyTorch, one process{}: {}\n", data_parallel, search_python_with_torch().to_string());
}

/// The data in the form that PyTorch's script reads, with the test set.
bench::RawDataset raw_data(const bench::TrainingTask& task, const data::Dataset& train_set,
                           const std::filesystem::path& folder) {
  const auto test_set = open_chosen(task.data, data::Split::test);
  const std::filesystem::path test_folder = folder / "test";
  std::filesystem::create_directory(test_folder);
  bench::RawDataset data = bench::RawDataset::write(train_set, folder);
  const bench::RawDataset test = bench::RawDataset::write(*test_set, test_folder);
  data.test_images = test.images;
  data.test_labels = test.labels;
  return data;
}

std::vector<Contestant> pytorch_rows(const ParallelBenchOptions& options, const data::Dataset& train_set,
                                     const std::filesystem::path& folder, std::vector<std::string>& remarks) {
  if (options.without_pytorch) return {};
  const PythonSearch search = search_python_with_torch();
  remarks.push_back(search.to_string());
  if (!search.python) return {};
  const bench::TrainingTask& task = options.output.task;
  const bench::RawDataset data = raw_data(task, train_set, folder);
  std::vector<Contestant> rows;
  const auto add = [&](const char* name, int ranks) {
    rows.push_back(bench::pytorch_contestant(
        *search.python, {.name = name, .ranks = ranks, .global_batch = options.global_batch}, task, data));
  };
  add("PyTorch, one process", 1);
  if (options.ranks > 1) {
    add("PyTorch, DDP over gloo", options.ranks);
    remarks.push_back("PyTorch's DataParallel splits batches over GPUs only, so it has no row on a CPU.");
  }
  remarks.push_back(fmt::format("PyTorch multiplies matrices by {}.", rows.back().blas));
  return rows;
}

void run(ParallelBenchOptions& options) {
  const std::int64_t parts = options.ranks * options.passes;
  if (options.global_batch % parts != 0)
    throw UsageError(
        fmt::format("--global-batch is {}, expected a multiple of {} ranks times {} micro-batches: change it",
                    options.global_batch, options.ranks, options.passes));
  if (options.output.list) return list_rows(options);
  const std::int64_t rounds = options.output.rounds;
  bench_trainings({.name = "parallel",
                   .title = "one training, laid out over processes and devices",
                   .note = fmt::format("default model, Adam, global batch {}, {} round{}", options.global_batch, rounds,
                                       rounds == 1 ? "" : "s"),
                   .layouts = layouts_of(options),
                   .peers = [&](const auto& train_set, const auto& folder,
                                auto& remarks) { return pytorch_rows(options, train_set, folder, remarks); }},
                  options.output);
}

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

std::vector<TrainingLayout> layouts_of(const ScalingBenchOptions& options) {
  std::vector<TrainingLayout> layouts;
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
  if (options.output.list) return list_layouts(layouts_of(options), options.output.task);
  TrainingBenchSpec spec{
      .name = "scaling",
      .title = "strong and weak scaling",
      .note = fmt::format("strong: {} samples a step, weak: {} a rank", strong_batch(options), options.batch_size),
      .layouts = layouts_of(options)};
  if (const int cores = usable_processors(); options.ranks.most > cores)
    spec.remarks.push_back(fmt::format("{} ranks share {} cores.", options.ranks.most, cores));
  bench_trainings(spec, options.output);
}

}  // namespace

const Command kBenchParallel =
    make_command<ParallelBenchOptions>("parallel", "one training as one process, DataParallel, DDP and ZeRO");
const Command kBenchScaling = make_command<ScalingBenchOptions>("scaling", "strong and weak scaling over ranks");

}  // namespace gradring::train
