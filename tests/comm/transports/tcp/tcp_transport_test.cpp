// SPDX-License-Identifier: Apache-2.0
// What one rank sends and receives; the test plays the peers.
#include "comm/transports/tcp/tcp_transport.h"

#include <gmock/gmock.h>

#include <cstring>

#include "comm/transport/error.h"
#include "tests/comm/transports/tcp/scripted_peers.h"

namespace gradring::comm {
namespace {

using tests::Frame;
using tests::FrameKind;
using tests::header_for;
using tests::kBytes;
using tests::ScriptedPeers;
using tests::step_of;

TEST(TcpTransport, DoesNotOverwriteUnsentSlices) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(kBytes);
  std::memset(segment->data(), 'o', kBytes);
  peers.transport->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  EXPECT_EQ(peers.transport->poll(), Progress::received) << "the sent slice is still in use";

  const Step second = step_of(*segment, 1, {{Move::Kind::receive, 1, {0, 100}}});
  peers.transport->enqueue(second);
  peers.send(header_for(second, {0, 100}));
  peers.send_bytes(std::string(100, 'n').data(), 100);
  EXPECT_EQ(peers.transport->poll(), Progress::pending);
  EXPECT_EQ(segment->as<char>()[0], 'o');

  std::string received;
  Progress progress = Progress::pending;
  for (int turn = 0; turn < 10'000 && received.size() < sizeof(Frame) + kBytes; ++turn) {
    received += peers.receive(1 << 20);
    progress = peers.transport->poll();
  }
  ASSERT_EQ(received.size(), sizeof(Frame) + kBytes);
  EXPECT_EQ(received.find_first_not_of('o', sizeof(Frame)), std::string::npos) << "the peer received overwritten data";
  EXPECT_EQ(progress, Progress::done);
  EXPECT_EQ(segment->as<char>()[0], 'n');
}

TEST(TcpTransport, AddsElementsThatArriveByteByByte) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(3 * sizeof(float));
  for (int i = 0; i < 3; ++i) segment->as<float>()[i] = 1;
  const Step step = step_of(*segment, 0, {{Move::Kind::receive_add, 1, {0, 3}}}, kernels::DType::f32);
  peers.transport->enqueue(step);
  peers.send(header_for(step, {0, 3}));
  const float more[3] = {10, 20, 30};
  for (std::size_t byte = 0; byte < sizeof more; ++byte) {
    EXPECT_EQ(peers.transport->poll(), Progress::pending);
    peers.send_bytes(reinterpret_cast<const char*>(more) + byte, 1);
  }
  EXPECT_EQ(peers.transport->poll(), Progress::done);
  EXPECT_THAT(std::vector(segment->as<float>(), segment->as<float>() + 3), ::testing::ElementsAre(11, 21, 31));
}

TEST(TcpTransport, SendsAGoodbyeWhenDestroyed) {
  ScriptedPeers peers;
  peers.transport.reset();
  const std::string received = peers.receive(4096);
  ASSERT_EQ(received.size(), sizeof(Frame));
  Frame goodbye;
  std::memcpy(&goodbye, received.data(), sizeof goodbye);
  EXPECT_EQ(goodbye.kind, FrameKind::goodbye);
  EXPECT_EQ(goodbye.reason, GroupState::left);
}

TEST(TcpTransport, RejectsInvalidMoves) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(100);
  const auto refuses = [&](const Move& move, kernels::DType dtype = kernels::DType::u8) {
    EXPECT_THROW(peers.transport->enqueue(step_of(*segment, 0, {move}, dtype)), InvalidArgument);
  };
  refuses({Move::Kind::send, 0, {0, 1}});
  refuses({Move::Kind::send, 2, {0, 1}});
  refuses({Move::Kind::send, -1, {0, 1}});
  refuses({Move::Kind::send, 1, {0, 101}});
  refuses({Move::Kind::receive, 1, {~std::size_t{0}, 1}});
  refuses({Move::Kind::receive_add, 1, {0, 1}});
  refuses({Move::Kind::expose, 1, {0, 1}});
  refuses({Move::Kind::reduce_exposed, 1, {0, 1}}, kernels::DType::f32);
  EXPECT_EQ(peers.receive(1), "") << "a rejected move was sent";
}

}  // namespace
}  // namespace gradring::comm
