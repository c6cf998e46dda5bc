// SPDX-License-Identifier: Apache-2.0
// SIGHUP, as a terminal sends it when it is closed: the work is saved, as it is after SIGTERM.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <ostream>
#include <thread>

#include "kernels/base/file.h"
#include "tests/support/json.h"
#include "tests/train/app/commands/support/workplace.h"
#include "tests/train/support/text_of.h"

namespace gradring {
namespace {

using ::testing::HasSubstr;
using tests::joined;
using tests::ProgramEnd;
using tests::ProgramSpec;
using tests::short_training;
using tests::Words;

/// The ways to start a training: what stands before `train`, and options behind it.
struct Start {
  const char* name;
  Words before;
  Words options;
};

void PrintTo(const Start& start, std::ostream* out) { *out << start.name; }

class Hangup : public ::testing::TestWithParam<Start> {
 protected:
  /// A training that takes `steps` steps, started behind the words of `wrapper`.
  ProgramSpec training(const std::string& steps, const Words& wrapper) const {
    const Words train = joined(short_training({"--steps", steps, "--epochs", "1000000"}), GetParam().options);
    ProgramSpec spec = place_.gradring(joined(GetParam().before, train));
    spec.command.insert(spec.command.begin(), wrapper.begin(), wrapper.end());
    return spec;
  }
  std::size_t steps_made() const { return tests::records_of(place_.path("run/metrics.jsonl")).size(); }
  /// Waits for the training's first steps, and reads what it writes to `terminal` until then.
  bool trains(int terminal = -1) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (steps_made() < 3 && std::chrono::steady_clock::now() < deadline) {
      char text[4096];
      if (terminal >= 0) [[maybe_unused]]
        const ssize_t size = ::read(terminal, text, sizeof text);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return steps_made() >= 3;
  }
  void expect_saved(const ProgramEnd& end) const {
    EXPECT_EQ(end.code, 143) << end.err;
    const auto last = tests::parse_json(tests::records_of(place_.path("run/metrics.jsonl")).back());
    const auto latest = place_.path("run/checkpoints/latest");
    ASSERT_TRUE(std::filesystem::is_symlink(latest)) << "no checkpoint";
    EXPECT_EQ(std::filesystem::read_symlink(latest), "step-" + std::to_string(last.value("step", 0)));
    EXPECT_THAT(tests::text_of(place_.path("run/logs/rank_0.log")), HasSubstr("stopped by request after step "));
  }

  tests::Workplace place_;
};

TEST_P(Hangup, SavesACheckpointAndExitsAsAfterSigterm) {
  tests::RunningProgram program(training("1000000", {}));
  ASSERT_TRUE(trains());
  ::kill(program.pid(), SIGHUP);
  expect_saved(program.wait());
}

TEST_P(Hangup, IsIgnoredUnderNohup) {
  ProgramSpec spec = training("40", {"/bin/sh", "-c", "trap '' HUP; exec \"$@\"", "sh"});
  spec.command.insert(spec.command.end(), {"--inject", "delay:rank=0,step=5,ms=500"});
  tests::RunningProgram program(spec);
  ASSERT_TRUE(trains());
  ::kill(program.pid(), SIGHUP);
  ASSERT_LT(steps_made(), 40u) << "the run was over before the signal";
  const ProgramEnd end = program.wait();
  EXPECT_EQ(end.code, 0) << end.err;
  EXPECT_TRUE(std::filesystem::exists(place_.path("run/checkpoints/step-40")));
}

/// The kernel itself sends SIGHUP; what the training says from then on goes nowhere.
TEST_P(Hangup, OfATerminalThatIsClosedSavesACheckpoint) {
  UniqueFd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(terminal && ::grantpt(terminal.get()) == 0 && ::unlockpt(terminal.get()) == 0);
  const std::string line = ::ptsname(terminal.get());
  ProgramSpec spec = training(
      "1000000", {"/bin/sh", "-c", "exec setsid --ctty \"$@\" < " + line + " > " + line + " 2> " + line, "sh"});
  spec.command.insert(spec.command.end(), {"--progress", "bar"});
  tests::RunningProgram program(spec);
  ASSERT_TRUE(trains(terminal.get()));
  terminal.reset();
  expect_saved(program.wait());
}

const Start kStarts[] = {{"OfOneRank", {}, {}},
                         {"OfNprocs", {}, {"--nprocs", "2"}},
                         {"OfALauncher", {"launch", "--nproc-per-node", "2"}, {}},
                         {"OfALauncherThatTees", {"launch", "--nproc-per-node", "2", "-t", "3"}, {}}};

INSTANTIATE_TEST_SUITE_P(Train, Hangup, ::testing::ValuesIn(kStarts),
                         [](const auto& start) { return std::string(start.param.name); });

}  // namespace
}  // namespace gradring
