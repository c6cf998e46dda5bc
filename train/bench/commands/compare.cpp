// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/measured_training.h"
#include "train/bench/pytorch_peer.h"
#include "train/core/config/options.h"
#include "train/core/config/resolve.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kFormats[] = {"auto", "contiguous", "channels_last"};

struct CompareBenchOptions {
  bench::TrainingTask task;
  int ranks = 0;                ///< 0: not given
  std::int64_t batch_size = 0;  ///< 0: not given
  int threads = 1;              ///< of a rank
  int rounds = 3;
  bool dataloader = false;
  std::string format = "auto";  ///< of PyTorch's tensors: auto, contiguous, channels_last
  CommonBenchOptions common;
};

bench::TrainingLayout case_of(int ranks, int threads, std::int64_t batch_size) {
  const std::string of_threads = threads == 1 ? "" : fmt::format(" x {} threads", threads);
  return {.name = fmt::format("{} rank{}{} x batch {}", ranks, ranks == 1 ? "" : "s", of_threads, batch_size),
          .ranks = ranks,
          .threads = threads,
          .global_batch = ranks * batch_size};
}

/// The cases of docs/results: data-parallel over all cores of a small machine, and one core.
std::vector<bench::TrainingLayout> cases_of(const CompareBenchOptions& options) {
  const int ranks = options.ranks > 0 ? options.ranks : 2;
  const std::int64_t batch_size = options.batch_size > 0 ? options.batch_size : 256;
  const bench::TrainingLayout first = case_of(ranks, options.threads, batch_size);
  if (options.ranks > 0 || options.batch_size > 0) return {first};
  return {first, case_of(1, options.threads, 512)};
}

CommandLine command_line(CompareBenchOptions& options) {
  return {
      .command = "gradring bench compare",
      .purpose = "duration of the same training by gradring and by PyTorch",
      .options = with_common_options(
          dataset_options(
              options.task.data,
              {{.name = "model",
                .value = find_option("model")->value,
                .help = "model architecture: a built-in one, or a file (default convnet)",
                .read = [&](std::string_view text) { options.task.model = named_model(std::string(text)).name; }},
               count_option("nprocs", "ranks; PyTorch's use DDP over gloo (default 2, then 1)", 1, options.ranks),
               count_option("batch-size", "samples per rank and step (default 256, then 512)", 1, options.batch_size),
               count_option("threads", "threads of each rank (default 1)", 1, options.threads),
               count_option("epochs", "epochs of each training (default 1)", 1, options.task.epochs),
               count_option("steps", "steps after which each training ends; 0: after the epochs (default 0)", 0,
                            options.task.steps),
               count_option("rounds", "trainings of each side, alternating (default 3)", 1, options.rounds),
               switch_option("dataloader", "PyTorch also with batches from a torch.utils.data.DataLoader",
                             options.dataloader),
               choice_option("memory-format", kFormats,
                             "format of PyTorch's tensors; auto: the faster of both (default auto)", options.format)}),
          options.common),
      .notes =
          "The training is with Adam 1e-3 in fp32. PyTorch's network has the modules of the model's layers, and our "
          "initial weights. Ours evaluates the whole test set after each training, which is not timed. GRADRING_PYTHON "
          "names a Python that imports torch; else each python3 on PATH is tried. CPU seconds are those of all ranks "
          "in "
          "training alone; they vary less than wall time on a busy machine. All-reduce compared with gloo: "
          "gradring bench allreduce --compare gloo"};
}

/// Readers of a ratio must know: the reference BLAS in Fortran takes half of PyTorch's time.
void say_blas(const std::string& blas) {
  print_text("  PyTorch multiplies matrices by {}\n", blas);
  if (blas.find("/blas/libblas") != std::string::npos)
    print_text(
        "  that is the reference BLAS, which is slow: install libopenblas0-pthread, or the torch of PyPI, which has "
        "MKL\n");
  else if (!blas.starts_with("MKL") && blas.find("libmkl") == std::string::npos)
    print_text(
        "  on x86-64 the torch of PyPI, which has MKL, is a stronger peer: name its Python by GRADRING_PYTHON\n");
}

/// The memory format of PyTorch's tensors: the given one, or the faster one.
bool uses_channels_last(const std::string& python, const bench::TrainingLayout& layout, const bench::RawDataset& data,
                        const CompareBenchOptions& options) {
  if (options.format != "auto") return options.format == "channels_last";
  const bench::FormatTrial trial = bench::try_memory_formats(python, layout, options.task, data);
  print_text("  a few steps of PyTorch: contiguous {:.2f} s, channels_last {:.2f} s\n", trial.contiguous,
             trial.channels_last);
  return trial.channels_last_wins();
}

std::vector<double> column(const bench::TrainingRow& row, double bench::Measurement::*number) {
  std::vector<double> values;
  for (const bench::Measurement& round : row.rounds) values.push_back(round.*number);
  return values;
}

constexpr auto kWall = &bench::Measurement::seconds;
constexpr auto kProcessors = &bench::Measurement::processor_seconds;

/// Prints medians and ratios, and returns them.
nlohmann::json conclude(const std::vector<bench::TrainingRow>& rows) {
  nlohmann::json results = nlohmann::json::array();
  for (const bench::TrainingRow& row : rows) {
    const double seconds = *row.median(kWall), processors = *row.median(kProcessors);
    const double ratio = seconds / *rows.front().median(kWall);
    const double processor_ratio = processors / *rows.front().median(kProcessors);
    const double loss = row.rounds.back().loss;
    print_text(
        "  median   {:<20} {:8.2f} s, {:5.2f} times ours; processors {:8.2f} s, {:5.2f} times ours; mean loss {:.4f}\n",
        row.layout.name, seconds, ratio, processors, processor_ratio, loss);
    results.push_back({{"name", row.layout.name},
                       {"seconds", column(row, kWall)},
                       {"processor_seconds", column(row, kProcessors)},
                       {"median_seconds", seconds},
                       {"times_ours", ratio},
                       {"processors_times_ours", std::isfinite(processor_ratio) ? processor_ratio : 0},
                       {"loss", loss}});
  }
  return results;
}

void add_measurements(bench::BenchRun& run, const bench::TrainingTask& task, const bench::TrainingLayout& layout,
                      const std::vector<bench::TrainingRow>& rows) {
  for (const bench::TrainingRow& row : rows)
    for (const auto& [clock, number] : {std::pair("wall", kWall), std::pair("cpu", kProcessors)})
      run.add({.key = {{"dataset", task.data.dataset},
                       {"model", task.model},
                       {"ranks", std::to_string(layout.ranks)},
                       {"threads", std::to_string(layout.threads)},
                       {"batch_size", std::to_string(layout.global_batch / layout.ranks)},
                       {"epochs", std::to_string(task.epochs)},
                       {"steps", std::to_string(task.steps)},
                       {"name", row.layout.name},
                       {"clock", clock}},
               .unit = "s",
               .samples = column(row, number)});
}

nlohmann::json run_case(bench::BenchRun& run, const bench::TrainingLayout& layout, const bench::RawDataset& data,
                        const PythonSearch& search, const CompareBenchOptions& options) {
  print_text("\n{}\n", layout.name);
  std::vector<bench::Contestant> contestants;
  std::string format;
  if (search.python) {
    bench::PyTorchStyle style{.channels_last = uses_channels_last(*search.python, layout, data, options)};
    format = style.channels_last ? "channels_last" : "contiguous";
    const auto add = [&](const char* name) {
      contestants.push_back(bench::pytorch_contestant(*search.python, layout, options.task, data, style));
      contestants.back().layout.name = name;
    };
    add("PyTorch");
    style.dataloader = true;
    if (options.dataloader) add("PyTorch, DataLoader");
    say_blas(contestants.back().blas);
  }
  const std::string blas = contestants.empty() ? "" : contestants.back().blas;
  contestants.insert(contestants.begin(), bench::our_contestant(layout, options.task, data.images.parent_path()));
  contestants.front().layout.name = "gradring";
  const auto say = [](int round, const bench::Contestant& contestant, const bench::Measurement& measured) {
    print_text("  round {}  {:<20} {:8.2f} s; processors {:8.2f} s\n", round + 1, contestant.layout.name,
               measured.seconds, measured.processor_seconds);
    flush_standard_output();
  };
  const auto rows = bench::measure_rounds(contestants, options.rounds, say);
  add_measurements(run, options.task, layout, rows);
  return {{"ranks", layout.ranks},
          {"threads", layout.threads},
          {"batch_size", layout.global_batch / layout.ranks},
          {"memory_format", format},
          {"blas", blas},
          {"contenders", conclude(rows)}};
}

/// PyTorch would silently train on fewer samples.
void check_batches(const std::vector<bench::TrainingLayout>& cases, const std::string& name,
                   const data::Dataset& dataset) {
  for (const auto& layout : cases)
    if (const std::int64_t batch = layout.global_batch / layout.ranks; batch > dataset.size())
      throw UsageError(
          fmt::format("--batch-size is {}, but {} has {} training samples: lower it", batch, name, dataset.size()));
}

void list(const std::vector<bench::TrainingLayout>& cases, const PythonSearch& search,
          const CompareBenchOptions& options) {
  std::vector<std::string> names = {"gradring"};
  if (search.python) names.emplace_back("PyTorch");
  if (search.python && options.dataloader) names.emplace_back("PyTorch, DataLoader");
  for (const auto& layout : cases)
    print_list(fmt::format("{} of {} ({}):", layout.name, options.task.data.dataset, search.to_string()), names);
}

void run(CompareBenchOptions& options) {
  const std::vector<bench::TrainingLayout> cases = cases_of(options);
  const bench::TrainingTask& task = options.task;
  const auto dataset = open_chosen(task.data);
  check_batches(cases, task.data.dataset, *dataset);
  const PythonSearch search = search_python_with_torch();
  if (options.common.list) return list(cases, search, options);
  bench::BenchRun bench_run("compare", options.common.files);
  print_text("{}\n{}\n", bench_run.title(), search.to_string());
  print_text("{} epoch(s) of {} samples of {}{}; {}, Adam 1e-3, FP32\n", task.epochs, dataset->size(),
             task.data.dataset, task.steps > 0 ? fmt::format(", {} steps at most", task.steps) : "", task.model);
  const RunFolder folder;
  auto data = bench::RawDataset::write(*dataset, folder.path());
  data.weights = bench::write_first_weights(task.model, *dataset, folder.path());
  nlohmann::json results = nlohmann::json::array();
  for (const auto& layout : cases) results.push_back(run_case(bench_run, layout, data, search, options));
  bench_run.finish({{"dataset", task.data.dataset},
                    {"model", task.model},
                    {"epochs", task.epochs},
                    {"steps", task.steps},
                    {"torch", search.torch_version},
                    {"cases", results}});
}

}  // namespace

const Command kBenchCompare = make_command<CompareBenchOptions>("compare", "training time compared with PyTorch");

}  // namespace gradring::train
