// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "kernels/base/processors.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/commands/training_output.h"
#include "train/bench/measured_training.h"
#include "train/bench/pytorch_peer.h"
#include "train/bench/training_page.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train {
namespace {

using bench::Contestant;
using bench::TrainingLayout;

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

/// PyTorch's rows, each started and warm.
class PyTorchRows {
 public:
  void add(const std::string& name, int ranks, const std::string& python, const ParallelBenchOptions& options,
           const bench::RawDataset& data, std::int64_t samples) {
    const bench::TrainingTask& task = options.output.task;
    const TrainingLayout layout{.name = name, .ranks = ranks, .global_batch = options.global_batch};
    const auto peer = std::make_shared<bench::PyTorchPeer>(python, layout, task, data, bench::PyTorchStyle{});
    blas = peer->blas();
    const std::int64_t steps_per_epoch = (samples + options.global_batch - 1) / options.global_batch;
    const std::int64_t all = task.epochs * steps_per_epoch;
    const auto steps = static_cast<double>(task.steps > 0 ? std::min(task.steps, all) : all);
    contestants.push_back({.layout = layout, .framework = "PyTorch", .train = [=] {
                             bench::Measurement measured = peer->train();
                             const double epochs = steps / static_cast<double>(steps_per_epoch);
                             measured.seconds_per_epoch = measured.seconds / epochs;
                             measured.samples_per_second = static_cast<double>(samples) * epochs / measured.seconds;
                             return measured;
                           }});
  }

  std::vector<Contestant> contestants;
  std::string blas;  ///< as PyTorchPeer's
};

void list_rows(const ParallelBenchOptions& options) {
  list_layouts(layouts_of(options), options.output.task);
  if (options.without_pytorch) return;
  const std::string data_parallel = options.ranks > 1 ? " and with DDP over gloo" : "";
  print_text("PyTorch, one process{}: {}\n", data_parallel, search_python_with_torch().to_string());
}

/// The data in the form that PyTorch's script reads, with the test set.
bench::RawDataset raw_data(const bench::TrainingTask& task, const data::Dataset& train_set,
                           const std::filesystem::path& folder) {
  const auto test_set = data::open_dataset(task.dataset, data::Split::test, task.data_dir);
  const std::filesystem::path test_folder = folder / "test";
  std::filesystem::create_directory(test_folder);
  bench::RawDataset data = bench::RawDataset::write(train_set, folder);
  const bench::RawDataset test = bench::RawDataset::write(*test_set, test_folder);
  data.test_images = test.images;
  data.test_labels = test.labels;
  return data;
}

std::vector<Contestant> pytorch_rows(const ParallelBenchOptions& options, const data::Dataset& train_set,
                                     const std::filesystem::path& folder, bench::TrainingTable& table) {
  if (options.without_pytorch) return {};
  const PythonSearch search = search_python_with_torch();
  table.remarks.push_back(search.to_string());
  if (!search.python) return {};
  const bench::RawDataset data = raw_data(options.output.task, train_set, folder);
  PyTorchRows rows;
  rows.add("PyTorch, one process", 1, *search.python, options, data, train_set.size());
  if (options.ranks > 1) {
    rows.add("PyTorch, DDP over gloo", options.ranks, *search.python, options, data, train_set.size());
    table.remarks.push_back("PyTorch's DataParallel splits batches over GPUs only, so it has no row on a CPU.");
  }
  table.remarks.push_back(fmt::format("PyTorch multiplies matrices by {}.", rows.blas));
  return rows.contestants;
}

void run(ParallelBenchOptions& options) {
  const std::int64_t parts = options.ranks * options.passes;
  if (options.global_batch % parts != 0)
    throw UsageError(
        fmt::format("--global-batch is {}, expected a multiple of {} ranks times {} micro-batches: change it",
                    options.global_batch, options.ranks, options.passes));
  if (options.output.list) return list_rows(options);
  bench::BenchRun bench_run = begin_bench("parallel", options.output);
  const bench::TrainingTask& task = options.output.task;
  const auto train_set = data::open_dataset(task.dataset, data::Split::train, task.data_dir);
  bench::TrainingTable table{
      .title = "one training, laid out over processes and devices",
      .note = fmt::format("{} epoch{} of {} samples of {}{}; default model, Adam, global batch {}, {} round{}",
                          task.epochs, task.epochs == 1 ? "" : "s", train_set->size(), task.dataset,
                          task.steps > 0 ? fmt::format(", {} steps at most", task.steps) : "", options.global_batch,
                          options.output.rounds, options.output.rounds == 1 ? "" : "s"),
      .provenance = kernels::bench::provenance(),
      .machine_cores = usable_processors()};
  const RunFolder folder;
  std::vector<Contestant> contestants;
  for (const TrainingLayout& layout : layouts_of(options))
    contestants.push_back(bench::our_contestant(layout, task, folder.path()));
  for (Contestant& each : pytorch_rows(options, *train_set, folder.path(), table))
    contestants.push_back(std::move(each));
  table.rows = bench::measure_rounds(contestants, static_cast<int>(options.output.rounds));
  contestants.clear();  // PyTorch's processes end, and count as ours and not as other programs
  write_table(bench_run, table, options.output);
  if (!options.output.html_file.empty()) write_named_file(options.output.html_file, bench::to_html(table));
  bench::write_plots(table, options.output.plots);
}

}  // namespace

const Command kBenchParallel =
    make_command<ParallelBenchOptions>("parallel", "one training as one process, DataParallel, DDP and ZeRO");

}  // namespace gradring::train
