// SPDX-License-Identifier: Apache-2.0
#include "train/bench/measured_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <thread>
#include <type_traits>
#include <utility>

#include "data/datasets/open_folder.h"
#include "kernels/base/child_process.h"
#include "kernels/base/file.h"
#include "kernels/bench/statistics.h"
#include "train/bench/machine_state.h"
#include "train/core/config/options.h"
#include "train/core/setup/run_directory.h"
#include "train/launch/launcher.h"
#include "train/records/metrics/environment_error.h"
#include "train/records/metrics/run_history.h"
#include "train/records/metrics/summary.h"

namespace gradring::train::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kSampleInterval{50};
constexpr std::size_t kMostSummaryBytes = 1 << 20;

/// Every process and its parent, by their names in /proc.
std::map<std::string, std::string> parents() {
  std::map<std::string, std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/proc", ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == name.npos)
      found[name] = std::to_string(number_in_status(name, "PPid:"));
  }
  return found;
}

bool descends(const std::string& process, const std::string& ancestor,
              const std::map<std::string, std::string>& parent_of) {
  for (auto found = parent_of.find(process); found != parent_of.end(); found = parent_of.find(found->second))
    if (found->first == ancestor) return true;
  return false;
}

/// Means over the ranks, summed over the steps.
std::optional<double> communication_of(const RunHistory& history) {
  double waited = 0, whole = 0;
  for (const auto& [time, record] : history.ranks)
    for (std::size_t rank = 0; rank < record.seconds.size(); ++rank) {
      const auto steps = static_cast<double>(record.steps);
      waited += steps * record.exposed_communication[rank];
      whole += steps * record.seconds[rank];
    }
  return whole > 0 ? std::optional(waited / whole) : std::nullopt;
}

/// Median of a member, plain or optional, over the rounds that have it.
template <class Number>
std::optional<double> median_of(const std::vector<Measurement>& rounds, Number Measurement::*number) {
  std::vector<double> values;
  for (const Measurement& round : rounds) {
    if constexpr (std::is_same_v<Number, double>)
      values.push_back(round.*number);
    else if (round.*number)
      values.push_back(*(round.*number));
  }
  if (values.empty()) return std::nullopt;
  return kernels::bench::statistics_of(values).median;
}

}  // namespace

std::optional<double> TrainingRow::median(double Measurement::*number) const { return median_of(rounds, number); }
std::optional<double> TrainingRow::median(std::optional<double> Measurement::*number) const {
  return median_of(rounds, number);
}

std::size_t resident_bytes_of(int process) {
  const auto parent_of = parents();
  std::size_t kibibytes = 0;
  for (const auto& [each, parent] : parent_of)
    if (descends(each, std::to_string(process), parent_of)) kibibytes += number_in_status(each, "VmHWM:");
  return kibibytes * 1024;
}

std::vector<std::string> command_of(const TrainingLayout& layout, const TrainingTask& task) {
  std::vector<std::string> words = {"train", "--dataset", task.data.dataset, "--progress", "none", "--keep-last", "1"};
  const auto set = [&words](const std::string& option, const std::string& value) {
    words.insert(words.end(), {option, value});
  };
  if (!task.data.data_dir.empty()) set("--data-dir", task.data.data_dir);
  if (data::is_own_data(task.data.dataset)) set("--normalize", "half");  // as PyTorch's script
  if (task.data.dataset == data::kFolder)
    for (const char* option : kFolderOptions)
      set(fmt::format("--{}", option), shown_value(*find_option(option), task.data));
  set("--model", task.model);
  set("--device", task.device);
  if (task.device == "cuda") set("--simulate-gpu", "none");  // whatever the environment says: it would have no times
  set("--epochs", std::to_string(task.epochs));
  set("--steps", std::to_string(task.steps));
  set("--batch-size", std::to_string(layout.global_batch / (layout.ranks * layout.passes)));
  set("--accumulate", std::to_string(layout.passes));
  set("--threads", std::to_string(layout.threads));
  set("--precision", layout.precision);
  set("--zero", std::to_string(layout.zero));
  set("--nprocs", std::to_string(layout.ranks));
  set("--data-parallel", std::to_string(layout.devices));
  return words;
}

Measurement measure_training(const TrainingLayout& layout, const TrainingTask& task, const fs::path& folder) {
  const fs::path run = folder / "run";
  fs::remove_all(run);
  ChildCommand command{.words = {own_program()}, .keep_stderr = true};
  std::ranges::copy(command_of(layout, task), std::back_inserter(command.words));
  command.words.insert(command.words.end(), {"--run-dir", run.string()});
  const double before = processor_seconds_of_children();
  std::size_t resident = 0;
  {
    ChildProcess training(command);
    while (training.running()) {
      resident = std::max(resident, resident_bytes_of(training.id()));
      std::this_thread::sleep_for(kSampleInterval);
    }
  }
  const double processor_seconds = processor_seconds_of_children() - before;
  const auto summary = Summary::from_json(read_regular_file(summary_of(run), kMostSummaryBytes).value_or(""));
  if (!summary)
    throw EnvironmentError(
        fmt::format("a training did not finish: run it alone to see why:\n  {}", fmt::join(command.words, " ")));
  const RunHistory history = read_history(metrics_of(run));
  const double steps_per_epoch =
      history.headers.empty() ? 0 : static_cast<double>(history.headers.back().record.steps_per_epoch);
  Measurement measured{.seconds = summary->seconds,
                       .seconds_per_epoch = summary->seconds / static_cast<double>(summary->steps) * steps_per_epoch,
                       .samples_per_second = summary->samples_per_second,
                       .processor_seconds = processor_seconds,
                       .communication = communication_of(history),
                       .accuracy = summary->accuracy,
                       .loss = summary->train_loss,
                       .planned_bytes = static_cast<double>(summary->planned_memory.total()),
                       .peak_bytes = static_cast<double>(summary->peak_memory.total()),
                       .further_bytes = static_cast<double>(summary->further_device_bytes),
                       .resident_bytes = static_cast<double>(resident)};
  for (const auto& step : history.steps) measured.losses.push_back(step.record.loss);
  return measured;
}

Contestant our_contestant(const TrainingLayout& layout, const TrainingTask& task, const std::filesystem::path& folder) {
  print_to_stderr(fmt::format("warming up: {}\n", layout.name));
  TrainingTask one_step = task;
  one_step.steps = 1;
  const double overhead = measure_training(layout, one_step, folder).processor_seconds;
  return {.layout = layout, .train = [layout, task, folder, overhead] {
            Measurement measured = measure_training(layout, task, folder);
            const auto steps = static_cast<double>(measured.losses.size());
            const double of_later_steps = std::max(measured.processor_seconds - overhead, 0.0);
            measured.processor_seconds = steps > 1 ? of_later_steps * steps / (steps - 1) : 0;
            return measured;
          }};
}

std::vector<TrainingRow> measure_rounds(const std::vector<Contestant>& contestants, int rounds, HeardTraining heard) {
  if (!heard)
    heard = [rounds](int round, const Contestant& contestant, const Measurement& measured) {
      print_to_stderr(fmt::format("round {} of {}: {:<28} {:8.2f} s, {:7.0f} samples/s\n", round + 1, rounds,
                                  contestant.layout.name, measured.seconds, measured.samples_per_second));
    };
  auto measured =
      kernels::bench::in_turns(contestants.size(), kernels::bench::turns(rounds), [&](std::size_t i, int round) {
        Measurement one = contestants[i].train();
        heard(round, contestants[i], one);
        return one;
      });
  std::vector<TrainingRow> rows;
  for (std::size_t i = 0; i < contestants.size(); ++i)
    rows.push_back({contestants[i].layout, contestants[i].framework, std::move(measured[i])});
  return rows;
}

}  // namespace gradring::train::bench
