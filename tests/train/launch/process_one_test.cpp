// SPDX-License-Identifier: Apache-2.0
// The launcher as process 1 of a PID namespace, as in a container without an init. Skipped if that cannot be created.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/run_program.h"
#include "tests/support/temp_folder.h"

namespace gradring::train {
namespace {

using Words = std::vector<std::string>;

class LauncherAsProcessOne : public ::testing::Test {
 protected:
  void SetUp() override {
    if (in_namespace({"true"}).code != 0) GTEST_SKIP() << "no PID namespace may be made here";
  }
  tests::ProgramEnd in_namespace(const Words& command) const {
    Words words = {"/usr/bin/env", "unshare", "--pid", "--fork", "--kill-child", "--mount-proc"};
    words.insert(words.end(), command.begin(), command.end());
    return tests::run_program({.command = words, .folder = folder_.path()});
  }
  /// A worker that is a shell script.
  tests::ProgramEnd launch(const std::string& script) const {
    return in_namespace({GRADRING_LAUNCH_PROBE, "launch", "--", "sh", "-c", script});
  }

  tests::TempFolder folder_{"/tmp"};
};

TEST_F(LauncherAsProcessOne, ReapsAdoptedChildren) {
  const auto end = launch(R"(
      [ $PPID = 1 ] || exit 9
      for i in 1 2 3 4 5 6 7 8 9 10; do ( ( : ) & ); done
      looks=0
      while grep -q ') Z ' /proc/[0-9]*/stat 2>/dev/null; do
        looks=$((looks + 1)); [ $looks -lt 200 ] || exit 7; sleep 0.05
      done)");
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(LauncherAsProcessOne, ReapsItsKilledReaper) {
  const auto end = launch(R"(
      until reaper=$(grep -l '^gradring-reaper$' /proc/[0-9]*/comm); do :; done
      kill -KILL $(basename $(dirname $reaper))
      ( ( : ) & )
      looks=0
      while grep -q ') Z ' /proc/[0-9]*/stat 2>/dev/null; do
        looks=$((looks + 1)); [ $looks -lt 200 ] || exit 7; sleep 0.05
      done)");
  EXPECT_EQ(end.code, 0) << end.err;
}

TEST_F(LauncherAsProcessOne, ReturnsTheWorkersExitCode) {
  EXPECT_EQ(launch("( : & ); exit 5").code, 5);
  EXPECT_EQ(launch("( : & ); kill -SEGV $$").code, 128 + SIGSEGV);
}

TEST_F(LauncherAsProcessOne, ReturnsACodeForEverySignal) {
  for (const auto& [name, code] :
       {std::pair("USR1", 128 + SIGUSR1), {"USR2", 128 + SIGUSR2}, {"TERM", 143}, {"INT", 130}})
    EXPECT_EQ(launch(fmt::format("kill -{} 1; exec sleep 1000", name)).code, code) << name;
}

}  // namespace
}  // namespace gradring::train
