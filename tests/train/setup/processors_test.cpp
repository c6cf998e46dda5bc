// SPDX-License-Identifier: Apache-2.0
#include "train/setup/compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include "kernels/runtime/processors.h"
#include "tests/data/support/message_of.h"
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

TEST_F(Pinning, RefusesMoreThanThereAre) {
  const auto many = static_cast<unsigned>(usable_processors()) + 1;
  EXPECT_THAT(tests::message_of<UsageError>([&] { pin_to_own_cores(many, {}); }), HasSubstr("leave --pin out"));
  EXPECT_EQ(static_cast<unsigned>(usable_processors()) + 1, many);
}

}  // namespace
}  // namespace gradring::train
