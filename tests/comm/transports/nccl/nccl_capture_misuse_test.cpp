// SPDX-License-Identifier: Apache-2.0
// Misuse of a stream capture, planted.
#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "kernels/base/error.h"
#include "tests/comm/transports/nccl/two_ranks.h"

namespace gradring::tests {
namespace {

using ::testing::HasSubstr;

/// Two streams of one GPU, and the means to order them.
struct ForkedStreams {
  MisuseLog misuse;
  FakeGpu gpu{0, misuse};
  std::unique_ptr<kernels::Stream> first = gpu.make_stream(kernels::StreamMode::asynchronous);
  std::unique_ptr<kernels::Stream> second = gpu.make_stream(kernels::StreamMode::asynchronous);
  std::unique_ptr<kernels::Event> forked = gpu.make_event();
  std::unique_ptr<kernels::Event> joined = gpu.make_event();
  float memory[2] = {1, 1};

  void fork() {
    first->record(*forked);
    second->enqueue_wait(*forked);
    second->enqueue_zero(memory, sizeof(float));
  }
  void join() {
    second->record(*joined);
    first->enqueue_wait(*joined);
  }
};

/// The error that `call` throws.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "no error";
}

TEST(NcclMisuse, AcceptsAJoinedStreamInACapture) {
  ForkedStreams streams;
  const auto graph = streams.gpu.record(*streams.first, [&] {
    streams.fork();
    streams.join();
  });
  EXPECT_EQ(streams.memory[0], 1);
  graph->enqueue(*streams.first);
  streams.first->synchronize(Deadline::after(kMisuseTimeout));
  EXPECT_EQ(streams.memory[0], 0);
}

TEST(NcclMisuse, RejectsACaptureWithAStreamThatIsNotJoined) {
  ForkedStreams streams;
  EXPECT_THAT(error_of([&] { streams.gpu.record(*streams.first, [&] { streams.fork(); }); }),
              HasSubstr("cudaErrorStreamCaptureUnjoined"));
  const auto joins_too_early = [&] {
    streams.fork();
    streams.join();
    streams.second->enqueue_zero(streams.memory + 1, sizeof(float));
  };
  EXPECT_THAT(error_of([&] { streams.gpu.record(*streams.first, joins_too_early); }),
              HasSubstr("cudaErrorStreamCaptureUnjoined"));
  EXPECT_FALSE(static_cast<FakeStream&>(*streams.first).capture());  // ended all the same
}

TEST(NcclMisuse, RejectsACapturedWaitForAnEventFromOutside) {
  ForkedStreams streams;
  streams.second->record(*streams.joined);
  EXPECT_THAT(
      error_of([&] { streams.gpu.record(*streams.first, [&] { streams.first->enqueue_wait(*streams.joined); }); }),
      HasSubstr("cudaErrorStreamCaptureIsolation"));
}

TEST(NcclMisuse, NotesAMessageThatOneRankCaptured) {
  TwoRanks ranks;
  ranks.exchange(ranks.memory[0], ranks.memory[1]);  // connects the ranks
  ranks.synchronize();
  const auto graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
    ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); });
    ASSERT_EQ(ranks.settle(0), ncclSuccess);
  });
  graph->enqueue(*ranks.stream[0]);
  ranks.group(1, [&] { ranks.receive(1, ranks.memory[1]); });
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_EQ(ranks.noted(), "rank 0 runs as part of a graph what rank 1 runs without one");
}

TEST(NcclMisuse, NotesAReductionThatOneRankCaptured) {
  TwoRanks ranks;
  for (const int rank : {0, 1}) {
    ASSERT_EQ(ranks.settle(rank), ncclSuccess);
    ranks.group(rank, [&] { ranks.all_reduce(rank, ranks.memory[rank], ranks.memory[rank]); });  // connects the ranks
  }
  for (const int rank : {0, 1}) ASSERT_EQ(ranks.settle(rank), ncclSuccess);
  ranks.synchronize();
  const auto graph = ranks.gpu[0].record(*ranks.stream[0], [&] {
    ranks.group(0, [&] { ranks.all_reduce(0, ranks.memory[0], ranks.memory[0]); });
    ASSERT_EQ(ranks.settle(0), ncclSuccess);
  });
  graph->enqueue(*ranks.stream[0]);
  ranks.group(1, [&] { ranks.all_reduce(1, ranks.memory[1], ranks.memory[1]); });
  ASSERT_EQ(ranks.settle(1), ncclSuccess);
  EXPECT_EQ(ranks.noted(), "rank 0 runs as part of a graph what rank 1 runs without one");
}

TEST(NcclMisuse, NotesCallsFromAnotherThreadDuringCapture) {
  TwoRanks ranks;
  ASSERT_EQ(ranks.settle(0), ncclSuccess);
  ranks.gpu[0].record(*ranks.stream[0],
                      [&] { std::thread([&] { ranks.group(0, [&] { ranks.send(0, ranks.memory[0]); }); }).join(); });
  EXPECT_THAT(ranks.noted(), HasSubstr("from another thread than the capturing one"));
}

}  // namespace
}  // namespace gradring::tests
