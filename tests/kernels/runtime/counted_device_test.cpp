// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/counted_device.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/host/host_device.h"
#include "kernels/runtime/dry_run_device.h"

namespace gradring::kernels {
namespace {

TEST(MemoryCounter, TracksThePeak) {
  MemoryCounter counter;
  counter.add(100);
  counter.remove(40);
  counter.add(20);
  EXPECT_EQ(counter.now_bytes(), 80u);
  EXPECT_EQ(counter.peak_bytes(), 100u);
  {
    CountedBytes held(counter, 50);
    const CountedBytes moved = std::move(held);  // counts once
    EXPECT_EQ(counter.now_bytes(), 130u);
  }
  EXPECT_EQ(counter.now_bytes(), 80u);
  EXPECT_EQ(counter.peak_bytes(), 130u);
}

TEST(MemoryCounter, CountsExactlyAcrossThreads) {
  constexpr int kThreads = 4, kRounds = 1000;
  MemoryCounter counter;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&counter] {
      for (int i = 0; i < kRounds; ++i) {
        counter.add(3);
        if (i % 2 == 0) counter.remove(3);
      }
    });
  threads.clear();
  EXPECT_EQ(counter.now_bytes(), 3u * kThreads * kRounds / 2);
  EXPECT_GE(counter.peak_bytes(), counter.now_bytes());
}

TEST(CountedDevice, CountsDeviceMemoryFromAllocationToRelease) {
  HostDevice device;
  MemoryCounter counter;
  CountedDevice counted(device, counter);
  EXPECT_EQ(counted.id(), device.id());
  {
    const Buffer first = counted.allocate(1000, MemoryKind::device);
    Buffer second = counted.allocate(24, MemoryKind::device);
    const Buffer pinned = counted.allocate(5000, MemoryKind::pinned);
    const Buffer none = counted.allocate(0, MemoryKind::device);
    std::memset(first.data(), 1, first.size());
    EXPECT_EQ(first.size(), 1000u);
    EXPECT_EQ(pinned.size(), 5000u);
    EXPECT_EQ(none.data(), nullptr);
    EXPECT_EQ(counter.now_bytes(), 1024u);
    second = Buffer();
    EXPECT_EQ(counter.now_bytes(), 1000u);
  }
  EXPECT_EQ(counter.now_bytes(), 0u);
  EXPECT_EQ(counter.peak_bytes(), 1024u);
}

TEST(CountedDevice, CountsPurposesOfOneDeviceSeparately) {
  HostDevice device;
  MemoryCounter weights, gradients;
  CountedDevice for_weights(device, weights), for_gradients(device, gradients);
  const Buffer w = for_weights.allocate(10, MemoryKind::device), g = for_gradients.allocate(20, MemoryKind::device);
  EXPECT_EQ(weights.now_bytes(), 10u);
  EXPECT_EQ(gradients.now_bytes(), 20u);
}

TEST(DryRunDevice, ShowsWhatWouldBeAllocatedAndAllocatesNothing) {
  const HostDevice device;
  DryRunDevice pretended(device);
  MemoryCounter counter;
  CountedDevice counted(pretended, counter);
  EXPECT_EQ(pretended.id(), device.id());
  const std::size_t more_than_there_is = std::size_t{1} << 60;
  const Buffer first = counted.allocate(more_than_there_is, MemoryKind::device);
  const Buffer second = counted.allocate(7, MemoryKind::device);
  EXPECT_GE(second.data(), first.data() + more_than_there_is);
  EXPECT_EQ(counter.now_bytes(), more_than_there_is + 7);
  const Buffer pinned = pretended.allocate(16, MemoryKind::pinned);
  std::memset(pinned.data(), 1, pinned.size());
}

TEST(DryRunDevice, DoesNoWork) {
  const HostDevice device;
  DryRunDevice pretended(device);
  const Buffer memory = pretended.allocate(64, MemoryKind::device);
  const auto stream = pretended.make_stream(StreamMode::in_place);
  bool ran = false;
  stream->enqueue([&ran] { ran = true; });
  stream->enqueue_zero(memory.data(), memory.size());
  const auto event = pretended.make_event();
  stream->record(*event);
  stream->synchronize(Deadline::after(std::chrono::seconds(1)));
  pretended.record(*stream, [&ran] { ran = true; })->enqueue(*stream);
  EXPECT_TRUE(event->reached());
  EXPECT_FALSE(ran);
  EXPECT_THROW(stream->native_handle(), InvalidArgument);
}

}  // namespace
}  // namespace gradring::kernels
