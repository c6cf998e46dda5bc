// SPDX-License-Identifier: Apache-2.0
// Trainings that are stopped as a whole for longer than --timeout, and continued: the launcher and all ranks, as by the
// cgroup freezer or a virtual machine that pauses.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <list>
#include <ranges>
#include <thread>

#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/launch/process_table.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using nlohmann::json;
using tests::ProgramEnd;
using tests::Words;
using tests::Workplace;

constexpr std::chrono::seconds kTimeout(2);
constexpr std::chrono::milliseconds kDelay(1500);
/// Not all of them go on at the same moment: the newest first, so that ranks wait for rank 0 even longer.
constexpr std::chrono::milliseconds kBetweenContinued(100);

/// A training by two ranks in a folder of its own.
class FrozenRun {
 public:
  explicit FrozenRun(const std::string& comm) : program_(place_.gradring(words(comm))) {}

  std::vector<pid_t> processes() const { return train::processes_with("TMPDIR=" + place_.folder().path().string()); }
  /// Whether rank 0 sleeps in a step, in which the other rank waits for it.
  bool has_begun_to_wait() const {
    return tests::text_of(place_.path("logs/none/attempt_0/0/stderr.log")).find("--inject: delay of") !=
           std::string::npos;
  }
  void expect_finished() {
    const ProgramEnd end = program_.wait();
    EXPECT_EQ(end.code, 0) << end.err;
    EXPECT_TRUE(train::eventually([&] { return processes().empty(); })) << "processes are left";
  }
  std::string weights() const {
    const json summary = tests::try_parse_json(tests::text_of(place_.path("run/summary.json")));
    return summary.is_object() ? summary.at("parameters_sha256") : "no summary";
  }

 private:
  static Words words(const std::string& comm) {
    const Words train = tests::short_training({"--comm", comm, "--reproducible", "--steps", "20", "--epochs", "1000",
                                               "--timeout", std::to_string(kTimeout.count()) + "s", "--inject",
                                               "delay:rank=0,step=8,ms=" + std::to_string(kDelay.count())});
    return tests::joined({"launch", "--nproc-per-node", "2", "--log-dir", "logs", "--redirects", "2"}, train);
  }

  Workplace place_;
  tests::RunningProgram program_;
};

TEST(FrozenRuns, GoOnWhenTheyAreContinued) {
  FrozenRun undisturbed("shm");
  undisturbed.expect_finished();

  std::list<FrozenRun> frozen;
  std::vector<pid_t> stopped;
  for (const char* comm : {"shm", "tcp"}) {
    const FrozenRun& run = frozen.emplace_back(comm);
    ASSERT_TRUE(train::eventually([&] { return run.has_begun_to_wait(); }));
    std::vector<pid_t> processes = run.processes();
    std::ranges::sort(processes);
    EXPECT_GE(processes.size(), 3u) << "a launcher and two ranks";
    for (const pid_t pid : processes) train::signal_process(pid, SIGSTOP);
    stopped.insert(stopped.end(), processes.begin(), processes.end());
  }
  std::this_thread::sleep_for(2 * kTimeout);
  for (const pid_t pid : std::views::reverse(stopped)) {
    train::signal_process(pid, SIGCONT);
    std::this_thread::sleep_for(kBetweenContinued);
  }
  for (FrozenRun& run : frozen) {
    run.expect_finished();
    EXPECT_EQ(run.weights(), undisturbed.weights());
  }
}

}  // namespace
}  // namespace gradring
