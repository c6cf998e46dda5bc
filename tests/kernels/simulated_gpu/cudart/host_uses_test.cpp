// SPDX-License-Identifier: Apache-2.0
// What the host uses of pinned memory that kernels write (streams_test.cpp has what copies write); the handler of SIGSEGV.
#include "kernels/simulated_gpu/cudart/host_uses.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/kernels/simulated_gpu/cudart/launched_kernels.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kHandledBefore = 7;

void use_null_pointer() {
  const HostUses uses({});
  int* volatile const null = nullptr;
  *static_cast<volatile int*>(null) = 1;
}

class HostUse : public tests::Kernels {
 protected:
  void SetUp() override {
    Kernels::SetUp();
    data_ = pinned(2);
    ok(launch_add_one(data_, data_));
    finish(stream_);
  }

  std::uint32_t* data_ = nullptr;  ///< on a page that a kernel wrote: 1, 0
};

TEST_F(HostUse, BeforeTheKernelWritesIsReported) {
  ok(launch_add_one(data_, data_));
  EXPECT_EQ(*data_, 1u) << "a program that does not wait finds out";
  EXPECT_EQ(wait(stream_), cudaErrorLaunchFailure);
  expect_fault("read by the host");
  expect_fault("written by add_one");
}

TEST_F(HostUse, OfWhatAKernelWroteWithoutAWaitIsReported) {
  const auto writer = [this] { return runtime().memory.newest_writer(reinterpret_cast<std::uintptr_t>(data_), 4); };
  const std::uint32_t writer_before = writer();
  ok(launch_add_one(data_, data_));
  ASSERT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);  // lets the device go on
  while (writer() == writer_before) std::this_thread::yield();
  EXPECT_EQ(*data_, 2u);
  EXPECT_NE(wait(stream_), cudaSuccess);
  expect_fault("read by the host");
}

TEST_F(HostUse, OfWhatItWaitedForIsSilent) {
  for (std::uint32_t round = 1; round < 4; ++round) {
    EXPECT_EQ(data_[0], round);
    ok(launch_add_one(data_, data_));
    const cudaEvent_t event = make_event();
    ok(cudaEventRecord(event, stream_));
    ok(launch_add_one(data_ + 1, data_ + 1));
    ok(cudaEventSynchronize(event));
  }
  EXPECT_EQ(data_[0], 4u);
  finish(stream_);
  EXPECT_EQ(data_[1], 3u);
}

TEST_F(HostUse, OfOtherProgramsIsNotCompared) {
  restart({.is_strict = false});
  stream_ = make_stream();
  data_ = pinned(1);
  for (std::uint32_t round = 0; round < 2; ++round) {
    ok(launch_add_one(data_, data_));
    EXPECT_EQ(*data_, round);
    finish(stream_);
  }
}

/// In processes of their own, as the handler stays.
class HostUsesDeathTest : public testing::Test {
 protected:
  HostUsesDeathTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(HostUsesDeathTest, LeavesOtherFaultsToTheHandlerBefore) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGSEGV, [](int) { std::_Exit(kHandledBefore); });
        use_null_pointer();
      },
      testing::ExitedWithCode(kHandledBefore), "");
}

TEST_F(HostUsesDeathTest, EndsTheProcessWithoutAHandlerBefore) {
  EXPECT_EXIT(
      {
        (void)std::signal(SIGSEGV, SIG_DFL);
        use_null_pointer();
      },
      testing::KilledBySignal(SIGSEGV), "");
}

TEST_F(HostUsesDeathTest, NamesMemoryThatWasGivenBack) {
  EXPECT_EXIT(
      {
        void* data = nullptr;
        if (cudaMallocHost(&data, 4) != cudaSuccess || cudaFreeHost(data) != cudaSuccess) std::_Exit(kHandledBefore);
        *static_cast<volatile int*>(data) = 1;
      },
      testing::KilledBySignal(SIGSEGV), "the host accesses 0x[0-9a-f]+, which cudaFreeHost or cudaFree has freed");
}

}  // namespace
}  // namespace gradring::simulated_gpu
