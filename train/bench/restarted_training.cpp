// SPDX-License-Identifier: Apache-2.0
#include "train/bench/restarted_training.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "train/bench/timed_training.h"
#include "train/launch/launcher.h"
#include "train/report/environment_error.h"
#include "train/setup/run_directory.h"

namespace gradring::train::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kPollInterval = std::chrono::milliseconds(2);
constexpr auto kPatience = std::chrono::minutes(1);
constexpr std::int64_t kStepsBetween = 25;  // more than two checkpoints
constexpr int kMostWait = 300;              // milliseconds after those steps, at most
constexpr std::streamoff kTail = 4096;      // some lines of the metrics
constexpr std::string_view kResumes = "resumes after step ";

std::string text_of(const std::filesystem::path& path, std::streamoff most) {
  std::ifstream file(path, std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : 0;
  std::string text(static_cast<std::size_t>(std::min(size, most)), '\0');
  file.seekg(size - static_cast<std::streamoff>(text.size()));
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  return text;
}

/// The number after the last occurrence of `words`; -1: not found.
std::int64_t number_after(const std::string& text, std::string_view words) {
  const std::size_t at = text.rfind(words);
  return at == std::string::npos ? -1 : std::atoll(text.c_str() + at + words.size());
}

}  // namespace

RestartedTraining::RestartedTraining(int ranks, const std::filesystem::path& folder, std::uint64_t seed)
    : ranks_(ranks), run_(folder / "run"), random_(seed) {
  launcher_ = start_silently({own_program(),
                              "launch",
                              "--nproc-per-node",
                              std::to_string(ranks),
                              "--max-restarts",
                              "1000000",
                              "--backoff",
                              "0",
                              "--min-progress-steps",
                              "0",
                              "train",
                              "--device",
                              "cpu",
                              "--threads",
                              "1",
                              "--batch-size",
                              "16",
                              "--epochs",
                              "1000000",
                              "--save-every-steps",
                              "10",
                              "--keep-last",
                              "2",
                              "--progress",
                              "none",
                              "--resume",
                              "auto",
                              "--run-dir",
                              run_.string()});
}

RestartedTraining::~RestartedTraining() {
  if (launcher_ < 0) return;
  ::kill(launcher_, SIGKILL);
  ::waitpid(launcher_, nullptr, 0);
}

template <class Condition>
void RestartedTraining::await(const char* what, Condition condition) {
  const auto deadline = Deadline::after(kPatience);
  while (!condition()) {
    if (::waitpid(launcher_, nullptr, WNOHANG) == launcher_) {
      launcher_ = -1;
      throw EnvironmentError(fmt::format("the training ended while the bench waited for {}: try it by hand", what));
    }
    if (deadline.passed()) throw EnvironmentError(fmt::format("waited for {} without success", what));
    std::this_thread::sleep_for(kPollInterval);
  }
}

std::string RestartedTraining::log_of(int rank) const { return text_of(log_file(run_, rank), kTail); }

std::int64_t RestartedTraining::steps() const { return number_after(text_of(metrics_of(run_), kTail), "\"step\":"); }

pid_t RestartedTraining::process_of(int rank) const {
  return static_cast<pid_t>(number_after(log_of(rank), fmt::format("rank {} of {}, process ", rank, ranks_)));
}

RestartTime RestartedTraining::crash() {
  await("some steps", [&] { return steps() >= from_ + kStepsBetween; });
  std::this_thread::sleep_for(std::chrono::milliseconds(random_() % kMostWait));
  const int victim = static_cast<int>(random_() % static_cast<unsigned>(ranks_));
  std::vector<pid_t> before;
  for (int rank = 0; rank < ranks_; ++rank) before.push_back(process_of(rank));
  if (before.at(static_cast<std::size_t>(victim)) <= 1)
    throw EnvironmentError("a rank's log does not name its process");

  const auto crash = Clock::now();
  const auto since = [crash] { return std::chrono::duration<double>(Clock::now() - crash).count(); };
  ::kill(before[static_cast<std::size_t>(victim)], SIGKILL);
  for (int rank = 0; rank < ranks_; ++rank)
    await("all ranks to come back", [&] {
      const std::string log = log_of(rank);
      const std::size_t last = log.rfind(kResumes);
      return process_of(rank) != before[static_cast<std::size_t>(rank)] && last != std::string::npos &&
             last > log.rfind(", process ");
    });
  RestartTime time{.back = since()};
  from_ = number_after(log_of(0), kResumes);
  await("the first step", [&] { return steps() > from_; });
  time.first_step = since();
  return time;
}

}  // namespace gradring::train::bench
