// SPDX-License-Identifier: Apache-2.0
#include "train/bench/timed_training.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/base/child_process.h"
#include "train/launch/launcher.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train::bench {
namespace {

namespace fs = std::filesystem;

}  // namespace

double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::chrono::duration<double> time_command(const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  const bool succeeded = ChildProcess({.words = words}).wait();
  const auto end = std::chrono::steady_clock::now();
  if (!succeeded) throw EnvironmentError(fmt::format("{} failed: run it alone to see why", fmt::join(words, " ")));
  return end - begin;
}

std::vector<std::vector<TrainingTime>> train_in_turns(
    const std::vector<Contender>& contenders, int rounds,
    const std::function<void(int, std::size_t, TrainingTime)>& heard) {
  std::vector<std::vector<TrainingTime>> times(static_cast<std::size_t>(rounds));
  for (int round = 0; round < rounds; ++round)
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      const TrainingTime time = contenders[i].train();
      times[static_cast<std::size_t>(round)].push_back(time);
      heard(round, i, time);
    }
  return times;
}

TrainingTime train_ourselves(const TimedTrainingSpec& spec, const fs::path& folder) {
  const fs::path run = folder / "run";
  fs::remove_all(run);
  LaunchOptions options{.program = own_program(), .nproc_per_node = spec.ranks};
  options.arguments = {"train", "--threads", "1", "--progress", "none"};
  const auto set = [&options](const char* option, const std::string& value) {
    options.arguments.insert(options.arguments.end(), {option, value});
  };
  set("--dataset", spec.dataset);
  set("--data-dir", spec.data_dir);
  set("--run-dir", run.string());
  set("--batch-size", std::to_string(spec.batch_size));
  set("--epochs", std::to_string(spec.epochs));
  set("--steps", std::to_string(spec.steps));
  const double before = processor_seconds_of_children();
  if (const int code = launch(options); code != 0)
    throw EnvironmentError(
        fmt::format("gradring's training exited with code {}, expected 0: run it alone to see why", code));
  const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
  return {.seconds = summary.at("seconds"),
          .processor_seconds = processor_seconds_of_children() - before,
          .loss = summary.at("train_loss")};
}

}  // namespace gradring::train::bench
