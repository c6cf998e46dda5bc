// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "data/datasets/open_dataset.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/commands.h"
#include "train/bench/commands/options.h"
#include "train/bench/pytorch_peer.h"
#include "train/bench/timed_training.h"
#include "train/core/doctor/find_python.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/exit_code.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr std::string_view kFormats[] = {"auto", "contiguous", "channels_last"};

struct CompareBenchOptions {
  bench::TimedTrainingSpec training;  ///< of every case, but for ranks and batch size
  std::int64_t ranks = 0;             ///< 0: not given
  std::int64_t batch_size = 0;        ///< 0: not given
  std::int64_t rounds = 3;
  bool dataloader = false;
  std::string format = "auto";  ///< of PyTorch's tensors: auto, contiguous, channels_last
  CommonBenchOptions common;
};

/// The cases of docs/results: data-parallel over all cores of a small machine, and one core.
std::vector<bench::TimedTrainingSpec> cases_of(const CompareBenchOptions& options) {
  std::vector<bench::TimedTrainingSpec> cases(2, options.training);
  cases[0].ranks = 2;
  cases[0].batch_size = 256;
  cases[1].ranks = 1;
  cases[1].batch_size = 512;
  if (options.ranks == 0 && options.batch_size == 0) return cases;
  cases.resize(1);
  if (options.ranks > 0) cases[0].ranks = static_cast<int>(options.ranks);
  if (options.batch_size > 0) cases[0].batch_size = options.batch_size;
  return cases;
}

CommandLine command_line(CompareBenchOptions& options) {
  return {
      .command = "gradring bench compare",
      .purpose = "duration of the same training by gradring and by PyTorch",
      .options = with_common_options(
          dataset_options(
              options.training.dataset, options.training.data_dir,
              {nprocs_option("ranks; PyTorch's use DDP over gloo (default 2, then 1)", "ranks", options.ranks),
               count_option("batch-size", "samples per rank and step (default 256, then 512)", 1, options.batch_size),
               count_option("epochs", "epochs of each training (default 1)", 1, options.training.epochs),
               count_option("steps", "steps after which each training ends; 0: after the epochs (default 0)", 0,
                            options.training.steps),
               count_option("rounds", "trainings of each side, alternating (default 3)", 1, options.rounds),
               switch_option("dataloader", "PyTorch also with batches from a torch.utils.data.DataLoader",
                             options.dataloader),
               choice_option("memory-format", kFormats,
                             "format of PyTorch's tensors; auto: the faster of both (default auto)", options.format)}),
          options.common),
      .notes =
          "The training is the seed model with Adam 1e-3 in fp32, one thread per rank. GRADRING_PYTHON names a "
          "Python that imports torch; else each python3 on PATH is tried. CPU seconds are those of all ranks in "
          "training alone; they vary less than wall time on a busy machine. All-reduce compared with gloo: "
          "gradring bench allreduce --compare gloo"};
}

/// PyTorch's variants, each started and warm; none without a Python.
class Peers {
 public:
  Peers(const PythonSearch& search, const bench::TimedTrainingSpec& spec, const bench::RawDataset& data,
        const CompareBenchOptions& options) {
    if (!search.python) return;
    bench::PyTorchStyle style{.channels_last = options.format == "channels_last"};
    if (options.format == "auto") {
      const bench::FormatTrial trial = bench::try_memory_formats(*search.python, spec, data);
      print_text("  a few steps of PyTorch: contiguous {:.2f} s, channels_last {:.2f} s\n", trial.contiguous,
                 trial.channels_last);
      style.channels_last = trial.channels_last_wins();
    }
    format_ = style.channels_last ? "channels_last" : "contiguous";
    add("PyTorch", *search.python, spec, data, style);
    style.dataloader = true;
    if (options.dataloader) add("PyTorch, DataLoader", *search.python, spec, data, style);
    say_blas();
  }

  std::vector<bench::Contender> contenders() const {
    std::vector<bench::Contender> all;
    for (const auto& [name, peer] : peers_) all.push_back({name, [it = peer.get()] { return it->train(); }});
    return all;
  }
  /// Memory format of their tensors; empty if there are none.
  const std::string& format() const { return format_; }
  /// As PyTorchPeer's.
  std::string blas() const { return peers_.empty() ? "" : peers_.front().second->blas(); }

 private:
  /// Readers of a ratio must know: the reference BLAS in Fortran takes half of PyTorch's time.
  void say_blas() const {
    print_text("  PyTorch multiplies matrices by {}\n", blas());
    if (blas().find("/blas/libblas") != std::string::npos)
      print_text(
          "  that is the reference BLAS, which is slow: install libopenblas0-pthread, or the torch of PyPI, which has "
          "MKL\n");
    else if (!blas().starts_with("MKL") && blas().find("libmkl") == std::string::npos)
      print_text(
          "  on x86-64 the torch of PyPI, which has MKL, is a stronger peer: name its Python by GRADRING_PYTHON\n");
  }

  void add(const std::string& name, const std::string& python, const bench::TimedTrainingSpec& spec,
           const bench::RawDataset& data, bench::PyTorchStyle style) {
    peers_.emplace_back(name, std::make_unique<bench::PyTorchPeer>(python, spec, data, style));
  }

  std::string format_;
  std::vector<std::pair<std::string, std::unique_ptr<bench::PyTorchPeer>>> peers_;
};

std::string title(const bench::TimedTrainingSpec& spec) {
  return fmt::format("{} rank{} x batch {}", spec.ranks, spec.ranks == 1 ? "" : "s", spec.batch_size);
}

/// One number of the contender's column.
std::vector<double> column(const std::vector<std::vector<bench::TrainingTime>>& times, std::size_t contender,
                           double bench::TrainingTime::*number) {
  std::vector<double> values;
  for (const auto& round : times) values.push_back(round[contender].*number);
  return values;
}

/// Prints medians and ratios, and returns them.
nlohmann::json conclude(const std::vector<bench::Contender>& contenders,
                        const std::vector<std::vector<bench::TrainingTime>>& times) {
  nlohmann::json results = nlohmann::json::array();
  const auto median = [&times](std::size_t contender, double bench::TrainingTime::*number) {
    return kernels::bench::statistics_of(column(times, contender, number)).median;
  };
  const auto wall = &bench::TrainingTime::seconds;
  const auto processors = &bench::TrainingTime::processor_seconds;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    const double ratio = median(i, wall) / median(0, wall);
    const double processor_ratio = median(i, processors) / median(0, processors);
    print_text(
        "  median   {:<20} {:8.2f} s, {:5.2f} times ours; processors {:8.2f} s, {:5.2f} times ours; mean loss {:.4f}\n",
        contenders[i].name, median(i, wall), ratio, median(i, processors), processor_ratio, times.back()[i].loss);
    results.push_back({{"name", contenders[i].name},
                       {"seconds", column(times, i, wall)},
                       {"processor_seconds", column(times, i, processors)},
                       {"median_seconds", median(i, wall)},
                       {"times_ours", ratio},
                       {"processors_times_ours", std::isfinite(processor_ratio) ? processor_ratio : 0},
                       {"loss", times.back()[i].loss}});
  }
  return results;
}

/// Our training. Its CPU seconds exclude those of a training that ends after the first step (start-up and evaluation),
/// as PyTorch's do.
std::function<bench::TrainingTime()> our_training(const bench::TimedTrainingSpec& spec,
                                                  const std::filesystem::path& folder) {
  bench::TimedTrainingSpec shortest = spec;
  shortest.steps = 1;
  const double overhead = bench::train_ourselves(shortest, folder).processor_seconds;
  return [&spec, folder, overhead] {
    bench::TrainingTime time = bench::train_ourselves(spec, folder);
    time.processor_seconds = std::max(time.processor_seconds - overhead, 0.0);
    return time;
  };
}

void add_measurements(bench::BenchRun& run, const bench::TimedTrainingSpec& spec,
                      const std::vector<bench::Contender>& contenders,
                      const std::vector<std::vector<bench::TrainingTime>>& times) {
  constexpr std::pair<const char*, double bench::TrainingTime::*> kClocks[] = {
      {"wall", &bench::TrainingTime::seconds}, {"cpu", &bench::TrainingTime::processor_seconds}};
  for (std::size_t i = 0; i < contenders.size(); ++i)
    for (const auto& [clock, number] : kClocks)
      run.add({.key = {{"dataset", spec.dataset},
                       {"ranks", std::to_string(spec.ranks)},
                       {"batch_size", std::to_string(spec.batch_size)},
                       {"epochs", std::to_string(spec.epochs)},
                       {"steps", std::to_string(spec.steps)},
                       {"name", contenders[i].name},
                       {"clock", clock}},
               .unit = "s",
               .samples = column(times, i, number)});
}

nlohmann::json run_case(bench::BenchRun& run, const bench::TimedTrainingSpec& spec, const bench::RawDataset& data,
                        const PythonSearch& search, const CompareBenchOptions& options) {
  print_text("\n{}\n", title(spec));
  const Peers peers(search, spec, data, options);
  const auto folder = data.images.parent_path();
  std::vector<bench::Contender> contenders = {{"gradring", our_training(spec, folder)}};
  std::ranges::move(peers.contenders(), std::back_inserter(contenders));
  const auto say = [&](int round, std::size_t contender, bench::TrainingTime time) {
    print_text("  round {}  {:<20} {:8.2f} s; processors {:8.2f} s\n", round + 1, contenders[contender].name,
               time.seconds, time.processor_seconds);
    flush_standard_output();
  };
  const auto times = bench::train_in_turns(contenders, static_cast<int>(options.rounds), say);
  add_measurements(run, spec, contenders, times);
  return {{"ranks", spec.ranks},
          {"batch_size", spec.batch_size},
          {"memory_format", peers.format()},
          {"blas", peers.blas()},
          {"contenders", conclude(contenders, times)}};
}

/// PyTorch would silently train on fewer samples.
void check_batches(const std::vector<bench::TimedTrainingSpec>& cases, const data::Dataset& dataset) {
  for (const auto& spec : cases)
    if (spec.batch_size > dataset.size())
      throw UsageError(fmt::format("--batch-size is {}, but {} has {} training samples: lower it", spec.batch_size,
                                   spec.dataset, dataset.size()));
}

void list(const std::vector<bench::TimedTrainingSpec>& cases, const PythonSearch& search,
          const CompareBenchOptions& options) {
  std::vector<std::string> names = {"gradring"};
  if (search.python) names.emplace_back("PyTorch");
  if (search.python && options.dataloader) names.emplace_back("PyTorch, DataLoader");
  for (const auto& spec : cases)
    print_list(fmt::format("{} of {} ({}):", title(spec), spec.dataset, search.to_string()), names);
}

void run(CompareBenchOptions& options) {
  const std::vector<bench::TimedTrainingSpec> cases = cases_of(options);
  const bench::TimedTrainingSpec& training = options.training;
  const auto dataset = data::open_dataset(training.dataset, data::Split::train, training.data_dir);
  check_batches(cases, *dataset);
  const PythonSearch search = search_python_with_torch();
  if (options.common.list) return list(cases, search, options);
  bench::BenchRun bench_run("compare", options.common.files);
  print_text("{}\n{}\n", bench_run.title(), search.to_string());
  print_text("{} epoch(s) of {} samples of {}{}; the seed model, Adam 1e-3, FP32, one thread a rank\n", training.epochs,
             dataset->size(), training.dataset,
             training.steps > 0 ? fmt::format(", {} steps at most", training.steps) : "");
  const RunFolder folder;
  const auto data = bench::RawDataset::write(*dataset, folder.path());
  nlohmann::json results = nlohmann::json::array();
  for (const auto& spec : cases) results.push_back(run_case(bench_run, spec, data, search, options));
  bench_run.finish({{"dataset", training.dataset},
                    {"epochs", training.epochs},
                    {"steps", training.steps},
                    {"torch", search.torch_version},
                    {"cases", results}});
}

}  // namespace

const Command kBenchCompare = make_command<CompareBenchOptions>("compare", "training time compared with PyTorch");

}  // namespace gradring::train
