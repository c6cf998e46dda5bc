// SPDX-License-Identifier: Apache-2.0
#include "train/cli/bench_compare.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "train/bench/find_python.h"
#include "train/bench/pytorch_peer.h"
#include "train/bench/timed_training.h"
#include "train/cli/bench_file.h"
#include "train/cli/command_line.h"
#include "train/config/parse_value.h"
#include "train/launch/run_folder.h"

namespace gradring::train {
namespace {

constexpr std::string_view kFormats[] = {"auto", "contiguous", "channels_last"};

struct Options {
  bench::TimedTrainingSpec training;
  std::int64_t ranks = 0;  ///< 0: the two cases below
  std::int64_t batch_size = 0;
  std::int64_t rounds = 3;
  bool dataloader = false;
  std::string format = "auto";
  std::string json_file;
};

/// What stands in docs/results: data parallel over all of a small machine, and one core alone.
std::vector<bench::TimedTrainingSpec> cases_of(const Options& options) {
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

CommandOption count(const std::string& name, const std::string& help, std::int64_t least, std::int64_t& value) {
  return {.name = name, .value = "N", .help = help, .read = [=, &value](std::string_view text) {
            value = parse_integer(name, text, {.least = least});
          }};
}

CommandOption text(const std::string& name, const std::string& shown, const std::string& help, std::string& value) {
  return {.name = name, .value = shown, .help = help, .read = [&value](std::string_view given) { value = given; }};
}

CommandLine command_line(Options& options) {
  CommandLine line{.command = "gradring bench compare", .options = {}};
  line.options = {
      text("dataset", "NAME", "what is learned [digits]", options.training.dataset),
      text("data-dir", "D", "where its files lie", options.training.data_dir),
      count("ranks", "processes; PyTorch's join by DDP over gloo [2, then 1]", 1, options.ranks),
      count("batch-size", "per rank [256, then 512]", 1, options.batch_size),
      count("epochs", "of each training [1]", 1, options.training.epochs),
      count("steps", "stop each training after so many; 0: never [0]", 0, options.training.steps),
      count("rounds", "trainings of each side, in turns [3]", 1, options.rounds),
      {.name = "dataloader",
       .help = "PyTorch once more, with batches from a torch.utils.data.DataLoader",
       .read = set_switch("dataloader", options.dataloader)},
      {.name = "memory-format",
       .value = "auto|contiguous|channels_last",
       .help = "of PyTorch's tensors; auto tries both and takes the faster [auto]",
       .read = [&options](std::string_view given) { options.format = parse_word("memory-format", given, kFormats); }}};
  CommandOption json = text("json", "FILE", "the results as JSON, too", options.json_file);
  json.letter = 'J';
  line.options.push_back(json);
  return line;
}

/// PyTorch's sides, each started and warm; none without a Python.
class Rivals {
 public:
  Rivals(const PythonSearch& search, const bench::TimedTrainingSpec& spec, const bench::RawDataset& data,
         const Options& options) {
    if (!search.python) return;
    bench::PyTorchStyle style{.channels_last = options.format == "channels_last"};
    if (options.format == "auto") {
      const bench::FormatTrial trial = bench::try_memory_formats(*search.python, spec, data);
      fmt::print("  a few steps of PyTorch: contiguous {:.2f} s, channels_last {:.2f} s\n", trial.contiguous,
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
    for (const auto& [name, peer] : peers_) all.push_back({name, [&peer = *peer] { return peer.train(); }});
    return all;
  }
  /// Of their tensors; empty if there are none.
  const std::string& format() const { return format_; }
  /// As PyTorchPeer's.
  std::string blas() const { return peers_.empty() ? "" : peers_.front().second->blas(); }

 private:
  /// Half of PyTorch's time is its BLAS where that is the plain Fortran one, so whoever reads a ratio must know.
  void say_blas() const {
    if (blas().empty()) return;
    fmt::print(
        "  PyTorch multiplies matrices by {}{}\n", blas(),
        blas().find("/blas/libblas") == std::string::npos
            ? ""
            : ":\n  the reference BLAS, which is slow. To see PyTorch at its best, install libopenblas0-pthread, or "
              "unpack it\n  and let LD_LIBRARY_PATH point to its libblas.so.3");
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
    fmt::print(
        "  median   {:<20} {:8.2f} s, {:5.2f} times ours; processors {:8.2f} s, {:5.2f} times ours; mean loss {:.4f}\n",
        contenders[i].name, median(i, wall), ratio, median(i, processors), processor_ratio, times.back()[i].loss);
    results.push_back({{"name", contenders[i].name},
                       {"seconds", column(times, i, wall)},
                       {"processor_seconds", column(times, i, processors)},
                       {"median_seconds", median(i, wall)},
                       {"times_ours", ratio},
                       {"processors_times_ours", processor_ratio},
                       {"loss", times.back()[i].loss}});
  }
  return results;
}

nlohmann::json run_case(const bench::TimedTrainingSpec& spec, const bench::RawDataset& data, const PythonSearch& search,
                        const Options& options) {
  fmt::print("\n{}\n", title(spec));
  const Rivals rivals(search, spec, data, options);
  const auto folder = data.images.parent_path();
  std::vector<bench::Contender> contenders = {{"gradring", [&] { return bench::train_ourselves(spec, folder); }}};
  std::ranges::move(rivals.contenders(), std::back_inserter(contenders));
  const auto say = [&](int round, std::size_t contender, bench::TrainingTime time) {
    fmt::print("  round {}  {:<20} {:8.2f} s; processors {:8.2f} s\n", round + 1, contenders[contender].name,
               time.seconds, time.processor_seconds);
    std::fflush(stdout);
  };
  const auto times = bench::train_in_turns(contenders, static_cast<int>(options.rounds), say);
  return {{"ranks", spec.ranks},
          {"batch_size", spec.batch_size},
          {"memory_format", rivals.format()},
          {"blas", rivals.blas()},
          {"contenders", conclude(contenders, times)}};
}

}  // namespace

void bench_compare(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  if (read_command_line(line, args).help) {
    fmt::print(
        "gradring bench compare: the same training by gradring and by PyTorch, in turns: the seed model, Adam 1e-3, "
        "FP32,\n"
        "one thread a rank. GRADRING_PYTHON names a Python that imports torch; else each python3 on PATH is tried.\n"
        "Processors' seconds, of all ranks together, suffer less from whatever else runs; ours count start-up and "
        "evaluation too.\n"
        "All-reduce beside gloo: gradring bench allreduce --compare gloo\n\n{}",
        help_of(line.options));
    return;
  }
  const auto provenance = kernels::bench::provenance();
  const PythonSearch search = search_python_with_torch();
  fmt::print("{}\n{}\n", to_string(provenance), search.to_string());

  const auto& training = options.training;
  const auto dataset = data::open_dataset(training.dataset, data::Split::train, training.data_dir);
  fmt::print("{} epoch(s) of {} samples of {}{}; the seed model, Adam 1e-3, FP32, one thread a rank\n", training.epochs,
             dataset->size(), training.dataset,
             training.steps > 0 ? fmt::format(", {} steps at most", training.steps) : "");
  const RunFolder folder;
  const auto data = bench::RawDataset::write(*dataset, folder.path());
  nlohmann::json cases = nlohmann::json::array();
  for (const auto& spec : cases_of(options)) cases.push_back(run_case(spec, data, search, options));
  write_bench_file(options.json_file, "compare", provenance,
                   {{"dataset", training.dataset},
                    {"epochs", training.epochs},
                    {"steps", training.steps},
                    {"torch", search.torch_version},
                    {"cases", cases}});
}

}  // namespace gradring::train
