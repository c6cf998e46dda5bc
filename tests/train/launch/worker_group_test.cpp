// SPDX-License-Identifier: Apache-2.0
#include "train/launch/worker_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/runtime/error.h"
#include "tests/train/launch/process_table.h"

namespace gradring::train {
namespace {

using ::testing::IsEmpty;

LaunchOptions sleepers(int count) { return {.program = "sleep", .arguments = {"300"}, .nproc_per_node = count}; }

TEST(WorkerGroup, LeavesNoWorkerWhenItGoes) {
  {
    const LaunchOptions options = sleepers(3);
    Terminals terminals;
    WorkerGroup workers(options, terminals);
    workers.start(0);
    EXPECT_TRUE(workers.running());
    EXPECT_THAT(children_of(::getpid()), ::testing::SizeIs(4));  // and the guard
  }
  EXPECT_THAT(children_of(::getpid()), IsEmpty());
}

TEST(WorkerGroup, LeavesNoWorkerWhenItCannotStartThemAll) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = 24, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const LaunchOptions options = sleepers(24);
  Terminals terminals;
  EXPECT_THROW(WorkerGroup(options, terminals).start(0), DeviceError);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(children_of(::getpid()), IsEmpty());
}

}  // namespace
}  // namespace gradring::train
