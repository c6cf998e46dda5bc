// SPDX-License-Identifier: Apache-2.0
// A long run allocates segments again and again: nothing may grow with their number.
#include <gtest/gtest.h>
#include <malloc.h>

#include "comm/rendezvous/store.h"
#include "kernels/host/host_device.h"
#include "tests/comm/support/ranks.h"
#include "tests/comm/transports/tcp/scripted_peers.h"
#include "tests/train/support/file_size_limit.h"

namespace gradring::comm {
namespace {

constexpr int kSegments = 4096;
constexpr std::size_t kLeastGrowth = kSegments * sizeof(std::uint64_t);

std::size_t heap_in_use() { return ::mallinfo2().uordblks; }

TEST(ManySegments, KeepNoMemoryInProcess) {
  tests::run_as_threads(1, [](ProcessGroup& group) {
    group.allocate(100);
    const std::size_t before = heap_in_use();
    for (int segment = 0; segment < kSegments; ++segment) group.allocate(100);
    EXPECT_LT(heap_in_use(), before + kLeastGrowth);
  });
}

TEST(ManySegments, KeepNoMemoryOverTcp) {
  tests::ScriptedPeers peers;
  peers.allocate(100);
  const std::size_t before = heap_in_use();
  for (int segment = 0; segment < kSegments; ++segment) peers.allocate(100);
  EXPECT_LT(heap_in_use(), before + kLeastGrowth);
}

/// Under a limit of file sizes (ulimit -f), where the file of a rank grew by every segment.
TEST(ManySegments, KeepNoFileSizeInSharedMemory) {
  constexpr std::size_t kBytes = 1 << 20;
  tests::run_as_processes(2, [](ProcessGroup& group) {
    const tests::FileSizeLimit limit(8 * kBytes);
    for (int segment = 0; segment < 100; ++segment) group.allocate(kBytes);
  });
}

/// Each rank in turn frees its part late, so the parts of the next segment are at different places in the ranks' files.
TEST(ManySegments, WorkWhereRanksFreeThemAtDifferentTimes) {
  tests::run_as_processes(3, [](ProcessGroup& group) {
    constexpr std::size_t kElements = 20'000;
    kernels::HostDevice device;
    const auto stream = device.make_stream(kernels::StreamMode::in_place);
    std::unique_ptr<Segment> segments[2];
    for (int round = 0; round < 12; ++round) {
      std::unique_ptr<Segment>& segment = segments[round % 2];
      std::unique_ptr<Segment> old = std::move(segment);
      if (round % 3 != group.rank()) old.reset();
      segment = group.allocate(kElements * sizeof(float));
      old.reset();
      for (std::size_t i = 0; i < kElements; ++i) {
        tests::require(segment->as<float>()[i] == 0, "it is not zeroed");
        segment->as<float>()[i] = static_cast<float>(round + group.rank());
      }
      group.all_reduce({.segment = segment.get(), .slice = {0, kElements}}, *stream);
      for (std::size_t i = 0; i < kElements; ++i)
        tests::require(segment->as<float>()[i] == static_cast<float>(3 * round + 3), "a sum is wrong");
    }
  });
}

}  // namespace
}  // namespace gradring::comm
