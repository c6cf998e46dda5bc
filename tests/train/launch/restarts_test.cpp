// SPDX-License-Identifier: Apache-2.0
// Restarts, with processes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/train/launch/launcher_fixture.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Restarts = LauncherFixture;

TEST_F(Restarts, StartAllAgainWithTheNextCount) {
  EXPECT_EQ(run({"launch", "--max-restarts=2", "--backoff=0", "--nproc-per-node=2", "train", "@0:1:exit=7",
                 "@1:0:exit=8", "@0:sleep", "@1:sleep", "dump=env"}),
            0);
  EXPECT_THAT(folder_.text("env.0"), HasSubstr("TORCHELASTIC_RESTART_COUNT=2\n"));
  EXPECT_THAT(folder_.text("env.1"), HasSubstr("TORCHELASTIC_MAX_RESTARTS=2\n"));
  EXPECT_THAT(errors(), HasSubstr("rank 1 of 2 "));
  EXPECT_THAT(errors(), HasSubstr("restart 1 of 2"));
  EXPECT_THAT(errors(), HasSubstr("restart 2 of 2"));
}

TEST_F(Restarts, EndWithTheLastCause) {
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "--nproc-per-node=3", "train", "@0:1:exit=7",
                 "@1:2:raise=9", "sleep"}),
            128 + 9);
  EXPECT_THAT(errors(), HasSubstr("not starting again: all 1 restarts are used up"));
}

TEST_F(Restarts, ForgetTheMessagesAndFilesOfTheAttemptBefore) {
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "train", "@0:report=first", "exit=7"}), 7);
  EXPECT_EQ(std::ranges::count(errors(), '\n'), 4) << errors();
  EXPECT_THAT(errors().substr(errors().find("restart 1")), Not(HasSubstr("first to")));
  EXPECT_THAT(errors().substr(errors().find("restart 1")), Not(HasSubstr(": first")));
}

TEST_F(Restarts, EndACrashLoopEarly) {
  EXPECT_EQ(run({"launch", "--max-restarts=50", "--backoff=0", "train", "progress=5", "exit=7"}), 7);
  EXPECT_THAT(errors(), HasSubstr("3 attempts in a row came less than 1 steps further"));
  EXPECT_THAT(errors(), HasSubstr("restart 3 of 50"));
  EXPECT_THAT(errors(), Not(HasSubstr("restart 4 of 50")));
}

TEST_F(Restarts, GoOnWhileThereIsProgress) {
  EXPECT_EQ(run({"launch", "--max-restarts=5", "--backoff=0", "--min-progress-steps=2", "train", "@0:progress=2",
                 "@1:progress=4", "@2:progress=6", "@3:progress=8", "@4:progress=10", "@5:exit=0", "exit=7"}),
            0);
}

TEST_F(Restarts, DoNotHelpAWrongCommandLineOfOurOwn) {
  EXPECT_EQ(run({"launch", "--max-restarts=5", "train", "exit=2"}), 2);
  EXPECT_THAT(errors(), HasSubstr("not starting again: code 2 is no end that another attempt could mend"));
  EXPECT_EQ(run({"launch", "--max-restarts=1", "--backoff=0", "--", "/bin/sh", "-c", "exit 2"}), 2);
  EXPECT_THAT(errors(), HasSubstr("restart 1 of 1"));
}

TEST_F(Restarts, AreEndedByASignalWhileTheyWait) {
  RunningLauncher launcher(folder_, {"launch", "--max-restarts=5", "--backoff=5m", "train", "exit=7"});
  ASSERT_TRUE(eventually([&] { return errors().find("again in 300 s") != std::string::npos; }));
  launcher.send(SIGTERM);
  EXPECT_EQ(launcher.wait(), 143);
}

TEST_F(Restarts, LeaveNothingWhenTheLauncherIsKilledAfterOne) {
  RunningLauncher launcher(folder_, {"launch", "--max-restarts=1", "--backoff=0", "--nproc-per-node=2", "train",
                                     "@0:0:exit=7", "child=child", "mark=up", "sleep"});
  launcher.await_mark("up", 0);
  launcher.await_mark("up", 1);
  ASSERT_TRUE(eventually([&] { return errors().find("restart 1 of 1") != std::string::npos; }));
  launcher.await_mark("up", 0);
  launcher.send(SIGKILL);
  EXPECT_EQ(launcher.wait(), -SIGKILL);
}

}  // namespace
}  // namespace gradring::train
