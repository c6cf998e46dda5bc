// SPDX-License-Identifier: Apache-2.0
#include "train/bench/timed_training.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/runtime/error.h"
#include "train/launch/launcher.h"
#include "train/report/environment_error.h"

namespace gradring::train::bench {
namespace {

/// File actions for posix_spawn: /dev/null for the standard streams.
class Silence {
 public:
  Silence() {
    ::posix_spawn_file_actions_init(&actions_);
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
      ::posix_spawn_file_actions_addopen(&actions_, stream, "/dev/null", O_RDWR, 0);
  }
  ~Silence() { ::posix_spawn_file_actions_destroy(&actions_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// CPU time of all reaped children.
double processor_seconds_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

pid_t start_silently(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const Silence silence;
  pid_t pid = -1;
  if (const int error = ::posix_spawnp(&pid, argv[0], silence.get(), nullptr, argv.data(), ::environ); error != 0)
    throw DeviceError(fmt::format("cannot start {}: {}", words.front(), std::strerror(error)));
  return pid;
}

std::chrono::duration<double> time_command(const std::vector<std::string>& words) {
  const auto begin = std::chrono::steady_clock::now();
  const pid_t pid = start_silently(words);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  const auto end = std::chrono::steady_clock::now();
  if (status != 0)
    throw EnvironmentError(fmt::format("{} did not end well: run it by hand to see why", fmt::join(words, " ")));
  return end - begin;
}

namespace fs = std::filesystem;

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
    throw EnvironmentError(fmt::format("our own training ended with exit code {}", code));
  const auto summary = nlohmann::json::parse(std::ifstream(run / "summary.json"));
  return {.seconds = summary.at("seconds"),
          .processor_seconds = processor_seconds_of_children() - before,
          .loss = summary.at("train_loss")};
}

}  // namespace gradring::train::bench
