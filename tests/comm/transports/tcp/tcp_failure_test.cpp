// SPDX-License-Identifier: Apache-2.0
// How one rank handles peers that fail, stall or send garbage; the test plays the peers.
#include "comm/transports/tcp/tcp_transport.h"

#include <gmock/gmock.h>

#include <cstring>

#include "comm/transport/error.h"
#include "tests/comm/transports/tcp/scripted_peers.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using tests::error_of;
using tests::Frame;
using tests::FrameKind;
using tests::header_for;
using tests::kBytes;
using tests::kShortWait;
using tests::later;
using tests::ScriptedPeers;
using tests::step_of;

TEST(TcpFailure, GarbageIsADesync) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(100);
  const Desync error = error_of<Desync>(peers, *segment, [&](const Step&) {
    const std::string garbage(500, '\x5a');
    peers.send_bytes(garbage.data(), garbage.size());
  });
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("received an invalid or out-of-order frame from rank 1"));
}

TEST(TcpFailure, AnAllocationOutOfOrderIsADesync) {
  for (const std::uint64_t number : {1, 3}) {
    ScriptedPeers peers;
    const auto segment = peers.allocate(100);
    const Desync error = error_of<Desync>(peers, *segment, [&](const Step&) {
      Frame frame;
      frame.kind = FrameKind::allocation;
      frame.segment = number;  // the next is 2
      peers.send(frame);
    });
    EXPECT_THAT(error.what(), HasSubstr("out-of-order frame from rank 1"));
  }
}

TEST(TcpFailure, AnIncompleteHeaderIsATimeout) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment,
      [&](const Step& step) {
        const Frame head = header_for(step, {0, 100});
        peers.send_bytes(&head, 40);
      },
      kShortWait);
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("in test 1, transfer 0"));
  const std::string sent = peers.receive(4096);
  ASSERT_GE(sent.size(), sizeof(Frame));
  Frame goodbye;
  std::memcpy(&goodbye, sent.data() + sent.size() - sizeof goodbye, sizeof goodbye);
  EXPECT_EQ(goodbye.kind, FrameKind::goodbye) << "the reason is sent";
  EXPECT_EQ(goodbye.reason, GroupState::timed_out);
  EXPECT_EQ(goodbye.subject, 1);
}

TEST(TcpFailure, DisconnectDuringAMessageIsPeerLost) {
  for (const std::size_t payload : {0, 1, 99}) {
    ScriptedPeers peers;
    const auto segment = peers.allocate(100);
    const PeerLost error = error_of<PeerLost>(peers, *segment, [&](const Step& step) {
      peers.send(header_for(step, {0, 100}));
      if (payload > 0) peers.send_bytes(std::string(payload, 'x').data(), payload);
      peers.transport->poll();
      peers.disconnect();
    });
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (a scripted peer) is gone"));
  }
}

TEST(TcpFailure, DisconnectDuringASendIsPeerLost) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(kBytes);
  peers.transport->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  EXPECT_EQ(peers.transport->poll(), Progress::received);
  peers.disconnect();
  const auto finish = [&] {
    while (peers.transport->poll() != Progress::done) peers.transport->wait(later());
  };
  EXPECT_THROW(finish(), PeerLost);
}

TEST(TcpFailure, APeerThatDoesNotReadIsATimeout) {
  ScriptedPeers peers;
  const auto segment = peers.allocate(kBytes);
  peers.transport->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  const Deadline deadline = Deadline::after(kShortWait);
  const auto finish = [&] {
    while (peers.transport->poll() != Progress::done) peers.transport->wait(deadline);
  };
  EXPECT_THROW(finish(), Timeout);
}

TEST(TcpFailure, AdoptsTheFailedRankOfAReport) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error =
      error_of<Timeout>(peers, *segment, [&](const Step&) { peers.send_goodbye(GroupState::timed_out, 2, 3); });
  EXPECT_EQ(error.peer(), 2);
  EXPECT_THAT(error.what(), HasSubstr("rank 3 reports that it timed out waiting for rank 2"));
}

TEST(TcpFailure, ReadsAGoodbyeBufferedWithAMessage) {
  ScriptedPeers peers(3);
  const auto segment = peers.allocate(100);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 50}}, {Move::Kind::receive, 2, {50, 50}}});
  peers.transport->enqueue(step);
  peers.send(header_for(step, {50, 50}), 2);
  peers.send_bytes(std::string(50, 'x').data(), 50, 2);
  peers.send_goodbye(GroupState::desync, 1, 2);
  const Deadline deadline = later();
  const auto finish = [&] {
    while (peers.transport->poll() != Progress::done) peers.transport->wait(deadline);
  };
  EXPECT_THROW(finish(), Desync) << "the goodbye is buffered, so polling the socket does not report it";
}

TEST(TcpFailure, IgnoresAnInvalidFrameBehindUnreadData) {
  ScriptedPeers peers(3);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment,
      [&](const Step& step) {
        peers.send(header_for(step, {0, 100}), 2);
        peers.send_bytes(std::string(100, 'x').data(), 100, 2);
        peers.send_goodbye(GroupState::timed_out, 1000, 2);  // there is no such rank
      },
      kShortWait);
  EXPECT_EQ(error.peer(), 1) << error.what();
}

TEST(TcpFailure, ReadsAFailureBehindUnreadData) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100'000);
  const Timeout error = error_of<Timeout>(peers, *segment, [&](const Step& step) {
    peers.send(header_for(step, {0, 100'000}), 2);
    peers.send_bytes(std::string(100'000, 'x').data(), 100'000, 2);
    peers.send_goodbye(GroupState::timed_out, 3, 2);
  });
  EXPECT_EQ(error.peer(), 3) << error.what();
}

TEST(TcpFailure, ANormalGoodbyeFailsOnlyRanksThatNeedThePeer) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  peers.send_goodbye(GroupState::left, -1, 2);
  peers.disconnect(2);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  peers.transport->enqueue(step);
  for (int turn = 0; turn < 3; ++turn) {
    peers.send({.kind = FrameKind::ask}, 3);  // ends the wait
    EXPECT_EQ(peers.transport->poll(), Progress::pending);
    peers.transport->wait(later());
  }
  peers.send(header_for(step, {0, 100}));
  peers.send_bytes(std::string(100, 'x').data(), 100);
  EXPECT_EQ(peers.transport->poll(), Progress::done);

  peers.transport->enqueue(step_of(*segment, 1, {{Move::Kind::receive, 2, {0, 100}}}));
  const auto finish = [&] {
    while (peers.transport->poll() != Progress::done) peers.transport->wait(later());
  };
  EXPECT_THROW(finish(), PeerLost);
}

}  // namespace
}  // namespace gradring::comm
