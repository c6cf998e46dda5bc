// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <thread>

#include "kernels/base/host_name.h"
#include "tests/data/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/support/file_size_limit.h"
#include "tests/train/support/text_of.h"
#include "train/launch/workers/run_folder.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/environment_error.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using tests::message_of;

class RunLockTest : public ::testing::Test {
 protected:
  RunLockTest() { fs::create_directory(run_); }
  std::string refusal(const fs::path& launch_folder = {}) const {
    return message_of<UsageError>([&] { RunLock(run_, launch_folder); });
  }

  tests::TempFolder folder_;
  fs::path run_ = folder_.path() / "run";
  fs::path file_ = run_ / kRunLockFile;
};

TEST_F(RunLockTest, NamesHolderAndChangesNothing) {
  const RunLock lock(run_, {});
  const std::string holder = tests::text_of(file_);
  const auto time = fs::last_write_time(file_);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("--run-dir " + run_.string() + " is in use by another run"),
                               HasSubstr("process " + std::to_string(::getpid())), HasSubstr("host " + host_name()),
                               ContainsRegex("started [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}")));
  EXPECT_EQ(tests::text_of(file_), holder);
  EXPECT_EQ(fs::last_write_time(file_), time);
}

TEST_F(RunLockTest, IsFreeAfterItsRun) {
  { const RunLock lock(run_, {}); }
  EXPECT_TRUE(fs::is_empty(run_));
  RunLock lock(run_, {});
  lock.release();
  EXPECT_FALSE(lock);
  EXPECT_TRUE(fs::is_empty(run_));
}

TEST_F(RunLockTest, MovesWithItsOwner) {
  RunLock first(run_, {});
  RunLock second = std::move(first);
  RunLock third;
  third = std::move(second);
  EXPECT_TRUE(third);
  EXPECT_THAT(refusal(), HasSubstr("in use"));
}

TEST_F(RunLockTest, OfKilledProcessDoesNotBlock) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RunLock lock(run_, {});
      ::write(ready[1], "x", 1) == 1 ? ::pause() : 0;
    } catch (...) {
    }
    ::_exit(1);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_THAT(refusal(), HasSubstr("process " + std::to_string(child)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(file_));
  EXPECT_TRUE(RunLock(run_, {}));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RunLockTest, HoldsBetweenRestartsOfOneLauncher) {
  auto launcher = std::make_optional<RunFolder>(folder_.path());
  const fs::path launch_folder = launcher->path();
  { const RunLock first_start(run_, launch_folder); }
  EXPECT_THAT(refusal(), AllOf(HasSubstr("process " + std::to_string(::getpid())), HasSubstr("under a launcher")));
  const RunFolder another(folder_.path());
  EXPECT_THAT(refusal(another.path()), HasSubstr("under a launcher"));
  EXPECT_TRUE(RunLock(run_, launch_folder)) << "the second start";
  launcher.reset();
  EXPECT_TRUE(RunLock(run_, {})) << "the launcher has ended";
}

TEST_F(RunLockTest, IsReleasedBeforeItsLauncherEnds) {
  const RunFolder launcher(folder_.path());
  RunLock lock(run_, launcher.path());
  lock.release();
  EXPECT_TRUE(RunLock(run_, {}));
}

TEST_F(RunLockTest, HoldsWithoutItsFile) {
  {
    const RunLock lock(run_, {});
    fs::remove(file_);
    EXPECT_THAT(refusal(), HasSubstr("in use by another run, whose .lock was removed"));
    EXPECT_TRUE(fs::is_empty(run_));
  }
  EXPECT_TRUE(RunLock(run_, {}));
}

TEST_F(RunLockTest, CanBeObservedWithoutDisturbance) {
  EXPECT_FALSE(is_locked(run_));
  EXPECT_TRUE(fs::is_empty(run_));
  {
    const RunLock lock(run_, {});
    EXPECT_TRUE(is_locked(run_));
    EXPECT_TRUE(is_run_lock(file_));
  }
  std::ofstream(file_) << R"({"pid": 1})";  // left by a run that was killed
  EXPECT_FALSE(is_locked(run_));
  std::jthread observer([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) is_locked(run_);
  });
  for (int run = 0; run < 100; ++run) EXPECT_TRUE(RunLock(run_, {}));
}

TEST_F(RunLockTest, RecognizesItsFile) {
  std::ofstream(file_) << "my notes\n";
  EXPECT_FALSE(is_run_lock(file_));
  std::ofstream(file_, std::ios::trunc);
  EXPECT_TRUE(is_run_lock(file_));
  const RunLock lock(run_, {});
  EXPECT_TRUE(is_run_lock(file_));
  EXPECT_FALSE(is_run_lock(run_));
}

TEST_F(RunLockTest, AcceptsFileWithoutHolder) {
  for (const char* text :
       {"", "half a li", "[1, 2]", R"({"pid": "x", "launch_folder": ""})", R"({"launch_folder": 5, "host": 7})"}) {
    std::ofstream(file_) << text;
    EXPECT_TRUE(RunLock(run_, {})) << text;
  }
}

TEST_F(RunLockTest, ReportsWhyItCannotBeWritten) {
  EXPECT_THAT(message_of<EnvironmentError>([&] { RunLock(folder_.path() / "none", {}); }),
              HasSubstr("none/.lock: No such file or directory"));
  const tests::FileSizeLimit disk(3);
  EXPECT_THROW(RunLock(run_, {}), EnvironmentError);
  EXPECT_TRUE(fs::is_empty(run_));
}

}  // namespace
}  // namespace gradring::train
