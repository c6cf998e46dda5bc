// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "kernels/base/processors.h"
#include "nn/backend/cpu/onednn.h"
#include "tests/data/support/message_of.h"
#include "tests/support/deny_system_call.h"
#include "train/options/exit_code.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

using ::testing::HasSubstr;

VariableLookup omp_threads(const char* value) {
  return [value](const std::string& name) -> std::optional<std::string> {
    if (!value || name != "OMP_NUM_THREADS") return std::nullopt;
    return value;
  };
}

/// The affinity of the test's process, put back at the end.
class Pinning : public ::testing::Test {
 protected:
  Pinning() { ::sched_getaffinity(0, sizeof before_, &before_); }
  ~Pinning() override { ::sched_setaffinity(0, sizeof before_, &before_); }
  cpu_set_t before_{};
};

TEST(ThreadsOfRank, AreThoseAskedForThenOpenMPsThenAShareOfTheCores) {
  const WorkerEnvironment alone;
  EXPECT_EQ(threads_of_rank(3, alone, omp_threads("5")), 3u);
  EXPECT_EQ(threads_of_rank(0, alone, omp_threads("5")), 5u);
  EXPECT_EQ(threads_of_rank(0, alone, omp_threads(nullptr)), static_cast<unsigned>(usable_processors()));
  for (const char* nonsense : {"", "0", "-1", "2x"})
    EXPECT_EQ(threads_of_rank(0, alone, omp_threads(nonsense)), static_cast<unsigned>(usable_processors())) << nonsense;
  EXPECT_EQ(threads_of_rank(0, {.world_size = 4096, .local_world_size = 4096}, omp_threads(nullptr)), 1u);
}

TEST(ThreadsOfRank, AreTheFirstOfOpenMPsListOfNestingLevels) {
  for (const char* list : {"3,2", "3,1,1", " 3 , 2", "3,", "\t3"})
    EXPECT_EQ(threads_of_rank(0, {}, omp_threads(list)), 3u) << list;
  for (const char* nonsense : {",2", "0,2", "x,2", "3 2"})
    EXPECT_EQ(threads_of_rank(0, {}, omp_threads(nonsense)), static_cast<unsigned>(usable_processors())) << nonsense;
  EXPECT_EQ(tests::message_of<UsageError>([] { threads_of_rank(0, {}, omp_threads("1025,2")); }),
            "OMP_NUM_THREADS is 1025,2, expected at most 1024 threads: lower it");
}

TEST(ThreadsOfRank, AreNoMoreThanCanBeStarted) {
  EXPECT_EQ(threads_of_rank(0, {}, omp_threads("1024")), 1024u);
  for (const char* many : {"1025", "99999999", "99999999999999999999999"}) {
    EXPECT_EQ(tests::message_of<UsageError>([&] { threads_of_rank(0, {}, omp_threads(many)); }),
              std::string("OMP_NUM_THREADS is ") + many + ", expected at most 1024 threads: lower it");
    EXPECT_EQ(threads_of_rank(2, {}, omp_threads(many)), 2u) << "--threads wins";
  }
  EXPECT_THAT(tests::message_of<UsageError>([] { threads_of_rank(std::int64_t(1) << 33, {}, omp_threads(nullptr)); }),
              HasSubstr("--threads is 8589934592, expected at most 1024"));
}

/// Ends this process as a command does that runs `work` where no thread can be started.
template <class Work>
[[noreturn]] void end_without_threads(Work work) {
  for (const long call : {SYS_clone3, SYS_clone})
    if (!tests::deny_system_call(static_cast<unsigned>(call), EAGAIN)) ::_exit(1);
  try {
    work();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", train::message_of(error).c_str());
    ::_exit(exit_code_of(error));
  }
  ::_exit(0);
}

class ThreadsDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(tests::deny_system_call(SYS_clone3, EAGAIN) ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) GTEST_SKIP() << "the kernel has no seccomp filters here";
    GTEST_FLAG_SET(death_test_style, "threadsafe");
  }
};

TEST_F(ThreadsDeathTest, NameTheLimitsIfTheyCannotBeStarted) {
  const auto compute_with = [](unsigned threads) { make_compute({.device = "cpu", .threads = threads}); };
  EXPECT_EXIT(end_without_threads([&] { compute_with(4); }), ::testing::ExitedWithCode(3),
              "^cannot start a thread: .*ulimit -u is .*lower --threads");
  EXPECT_EXIT(end_without_threads([&] { compute_with(1); }), ::testing::ExitedWithCode(0), "");
}

/// If another process takes the last ones after the check, OpenMP ends this one.
TEST_F(ThreadsDeathTest, NameTheLimitsIfOpenMpCannotStartThem) {
  if (!nn::has_onednn()) GTEST_SKIP() << "this build has no oneDNN";
  EXPECT_EXIT(end_without_threads([] { nn::set_onednn_threads(4); }), ::testing::ExitedWithCode(3),
              "cannot start threads .ulimit -u is .*lower --threads");
}

TEST_F(Pinning, GivesEachRankItsOwnCores) {
  const int cores = usable_processors();
  const WorkerEnvironment last{
      .rank = cores - 1, .world_size = cores, .local_rank = cores - 1, .local_world_size = cores};
  pin_to_own_cores(1, last);
  EXPECT_EQ(usable_processors(), 1);
  cpu_set_t own{};
  ::sched_getaffinity(0, sizeof own, &own);
  int highest = 0;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &before_)) highest = core;
  EXPECT_TRUE(CPU_ISSET(highest, &own));
}

TEST_F(Pinning, RejectsMoreThanThereAre) {
  const auto many = static_cast<unsigned>(usable_processors()) + 1;
  EXPECT_THAT(tests::message_of<UsageError>([&] { pin_to_own_cores(many, {}); }), HasSubstr("leave --pin out"));
  EXPECT_EQ(static_cast<unsigned>(usable_processors()) + 1, many);
}

}  // namespace
}  // namespace gradring::train
