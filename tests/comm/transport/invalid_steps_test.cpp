// SPDX-License-Identifier: Apache-2.0
// Steps that no transport can run correctly: every one rejects them, and says why.
#include <gmock/gmock.h>

#include <thread>

#include "comm/rendezvous/store.h"
#include "comm/transports/in_process/in_process.h"
#include "comm/transports/shared_memory/shared_memory.h"
#include "comm/transports/tcp/tcp_transport.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using enum Move::Kind;

constexpr int kWorld = 3;
constexpr std::size_t kElements = 16;

/// Connects rank `rank`, once every rank has called it.
using Connect = std::function<std::unique_ptr<Transport>(int rank)>;

Connect in_process() {
  const auto rendezvous = std::make_shared<InProcessRendezvous>(kWorld);
  return [rendezvous](int rank) { return make_in_process_transport(rendezvous, rank); };
}

Deadline later() { return Deadline::after(std::chrono::minutes(1)); }

Connect shared_memory() {
  const auto store = std::make_shared<MemoryStore>();
  return [store](int rank) {
    return make_shared_memory_transport(*store, {.rank = rank, .world_size = kWorld, .name = "data"}, later());
  };
}

Connect tcp() {
  const auto store = std::make_shared<MemoryStore>();
  return [store](int rank) {
    const TcpGroupOptions spec{.rank = rank, .world_size = kWorld, .name = "data"};
    return std::make_unique<TcpTransport>(tcp::connect_mesh(*store, spec, later()), rank);
  };
}

struct Medium {
  const char* name;
  Connect (*connect)();
};

class InvalidSteps : public ::testing::TestWithParam<Medium> {
 protected:
  void SetUp() override {
    const Connect connect = GetParam().connect();
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < kWorld; ++rank)
      threads.emplace_back([this, connect, rank] {
        const auto index = static_cast<std::size_t>(rank);
        transports_[index] = connect(rank);
        segments_[index] = transports_[index]->allocate(kElements * sizeof(float), later());
      });
  }

  void post(std::vector<Move> moves) {
    transports_[0]->enqueue({.range = {.segment = segments_[0].get(), .slice = {0, kElements}},
                             .moves = std::move(moves),
                             .operation = "test",
                             .collective = 1,
                             .index = 4});
  }
  /// Expects that rank 0 rejects the step.
  void expect_rejected(std::vector<Move> moves, const std::string& reason) {
    try {
      post(std::move(moves));
      ADD_FAILURE() << "accepted; expected: " << reason;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
  bool exposes() const { return transports_[0]->reaches_peers_memory(); }

 private:
  std::unique_ptr<Transport> transports_[kWorld];
  std::unique_ptr<Segment> segments_[kWorld];
};

INSTANTIATE_TEST_SUITE_P(Over, InvalidSteps,
                         ::testing::Values(Medium{"InProcess", in_process}, Medium{"SharedMemory", shared_memory},
                                           Medium{"Tcp", tcp}),
                         [](const auto& test) { return test.param.name; });

TEST_P(InvalidSteps, RejectsTwoMessagesOfAPair) {
  expect_rejected({{receive, 1, {0, 2}}, {receive, 2, {4, 2}}, {receive, 1, {10, 2}}},
                  "test step 4 has two messages from rank 1: expected at most one in a step; post them in two steps");
  expect_rejected({{receive, 1, {0, 2}}, {receive_add, 1, {10, 2}}}, "two messages from rank 1");
  expect_rejected({{send, 2, {0, 2}}, {send, 2, {0, 2}}}, "two messages to rank 2");
  expect_rejected({{send, 2, {}}, {send, 2, {}}}, "two messages to rank 2");
  if (exposes()) expect_rejected({{send, 2, {0, 2}}, {expose, 2, {4, 2}}}, "two messages to rank 2");
}

TEST_P(InvalidSteps, RejectsOverlappingMoves) {
  expect_rejected({{send, 1, {2, 4}}, {receive_add, 1, {2, 4}}},
                  "test step 4 has moves that overlap: found 4 elements at 2 with rank 1, and 4 at 2 with rank 1; use "
                  "disjoint slices, or two steps");
  expect_rejected({{send, 1, {0, 16}}, {send, 2, {0, 1}}, {receive, 1, {8, 1}}}, "moves that overlap");
  expect_rejected({{receive, 2, {8, 8}}, {receive, 1, {0, 9}}}, "moves that overlap");
  expect_rejected({{receive, 1, {3, 1}}, {receive, 2, {0, 16}}}, "moves that overlap");
  if (!exposes()) return;
  expect_rejected({{expose, 1, {0, 8}}, {expose, 2, {7, 1}}}, "moves that overlap");
  expect_rejected({{expose, 1, {0, 8}}, {reduce_exposed, 1, {4, 8}}}, "moves that overlap");
  expect_rejected({{reduce_exposed, 1, {0, 8}}, {send, 2, {0, 1}}, {reduce_exposed, 2, {0, 8}}}, "moves that overlap");
  expect_rejected({{reduce_exposed, 1, {0, 4}}, {reduce_exposed, 2, {8, 4}}}, "sums two slices");
}

TEST_P(InvalidSteps, AcceptsMovesThatMayRunTogether) {
  post({{send, 1, {0, 8}}, {send, 2, {4, 8}}, {receive, 1, {12, 4}}});
  post({{send, 1, {4, 4}}, {receive, 1, {8, 4}}, {receive, 2, {8, 0}}});
  if (exposes())
    post({{expose, 1, {0, 4}}, {expose, 2, {4, 4}}, {reduce_exposed, 1, {8, 8}}, {reduce_exposed, 2, {8, 8}}});
}

}  // namespace
}  // namespace gradring::comm
