// SPDX-License-Identifier: Apache-2.0
// How one rank handles peers that fail, stall or send garbage; the test plays the peers.
#include "comm/transports/tcp/tcp_transport.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#include "comm/transport/error.h"
#include "tests/comm/transports/tcp/scripted_peers.h"
#include "tests/support/test_clock.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using tests::Frame;
using tests::FrameKind;
using tests::header_for;
using tests::kBytes;
using tests::later;
using tests::ScriptedPeers;
using tests::step_of;

constexpr std::chrono::milliseconds kShort(300);

/// Lets the rank wait for a message of 100 bytes until it throws, while a thread calls `peer_turn` all the time.
template <class E>
E error_of(ScriptedPeers& peers, Segment& segment, const std::function<void(const Step&)>& meanwhile,
           std::chrono::nanoseconds timeout = std::chrono::seconds(60), const std::function<void()>& peer_turn = {}) {
  const Step step = step_of(segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  const Deadline deadline = Deadline::after(timeout);
  std::jthread peer;
  try {
    peers.transport->enqueue(step);
    meanwhile(step);
    if (peer_turn)
      peer = std::jthread([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); sleep_for(std::chrono::milliseconds(1))) peer_turn();
      });
    while (peers.transport->poll() == Progress::pending) peers.transport->wait(deadline);
    ADD_FAILURE() << "the step completed";
  } catch (const E& error) {
    EXPECT_THROW(peers.transport->poll(), E) << "a failed group throws again";
    return error;
  }
  return E({}, "");
}

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
      kShort);
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("in test 1, step 0"));
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
  const Deadline deadline = Deadline::after(kShort);
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

/// The frames that the transport has sent to a peer.
std::vector<Frame> frames_to(ScriptedPeers& peers, int peer) {
  const std::string received = peers.receive(1 << 16, peer);
  EXPECT_EQ(received.size() % sizeof(Frame), 0u);
  std::vector<Frame> frames(received.size() / sizeof(Frame));
  std::memcpy(frames.data(), received.data(), frames.size() * sizeof(Frame));
  return frames;
}

/// Peer `peer` answers that it waits for `subject`, if it was asked.
void answer(ScriptedPeers& peers, int peer, int subject) {
  for (const Frame& frame : frames_to(peers, peer))
    if (frame.kind == FrameKind::ask)
      peers.send({.kind = FrameKind::waiting, .subject = subject, .collective = frame.collective}, peer);
}

/// Rank 1 answers that it waits for rank 2, and rank 2 for rank 3. Once rank 3 is asked, the rest of the time passes.
void answer_up_to_rank_3(ScriptedPeers& peers) {
  answer(peers, 1, 2);
  answer(peers, 2, 3);
  const bool asked = !frames_to(peers, 3).empty();
  tests::TestClock::pass(std::chrono::milliseconds(asked ? 60'000 : 5));
}

TEST(TcpFailure, NamesTheEndOfTheWaitChain) {
  const tests::TestClock clock;
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [](const Step&) { tests::TestClock::pass(std::chrono::seconds(31)); }, std::chrono::minutes(1),
      [&] { answer_up_to_rank_3(peers); });
  EXPECT_EQ(error.peer(), 3) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("the chain of waiting ranks ends at rank 3"));
}

TEST(TcpFailure, FollowsAWaitChainBehindUnreadData) {
  const tests::TestClock clock;
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100'000);
  const Timeout error = error_of<Timeout>(
      peers, *segment,
      [&](const Step& step) {  // rank 2 is ahead: the first data of a later step, which is not received yet
        peers.send(header_for(step, {0, 100'000}), 2);
        peers.send_bytes(std::string(100'000, 'x').data(), 100'000, 2);
        tests::TestClock::pass(std::chrono::seconds(31));
      },
      std::chrono::minutes(1), [&] { answer_up_to_rank_3(peers); });
  EXPECT_EQ(error.peer(), 3) << error.what();
}

TEST(TcpFailure, EndsAWaitChainThatIsACircle) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [](const Step&) {}, 2 * kShort,
      [&] {
        answer(peers, 1, 2);
        answer(peers, 2, 1);
      });
  EXPECT_GT(error.peer(), 0) << error.what();
}

TEST(TcpFailure, IgnoresAnswersToOlderQuestions) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [&](const Step&) { peers.send({.kind = FrameKind::waiting, .subject = 3, .collective = 0}, 1); },
      kShort);
  EXPECT_EQ(error.peer(), 1) << error.what();
}

/// On a full host a waiting rank may not run for seconds. Its answer from before still holds.
TEST(TcpFailure, NamesTheEndOfTheWaitChainThoughRanksAnswerLate) {
  using std::chrono::seconds;
  const tests::TestClock clock;
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [](const Step&) { tests::TestClock::pass(seconds(5)); }, seconds(8),
      [&] {
        answer(peers, 1, 2);
        answer(peers, 2, 3);
        if (!frames_to(peers, 3).empty()) tests::TestClock::pass(seconds(5));
      });
  EXPECT_EQ(error.peer(), 3) << error.what();
}

TEST(TcpFailure, SendsNothingInTheFirstHalfOfAWait) {
  using std::chrono::milliseconds;
  const tests::TestClock clock;
  ScriptedPeers peers(3);
  const auto segment = peers.allocate(100);
  peers.transport->enqueue(step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 100}}}));
  const Deadline deadline = Deadline::after(std::chrono::seconds(60));
  const auto questions_with = [&](milliseconds left) {
    tests::TestClock::pass(deadline.remaining() - left);
    for (int turn = 0; turn < 2; ++turn) {
      peers.send({.kind = FrameKind::ask}, 2);  // ends the wait
      EXPECT_EQ(peers.transport->poll(), Progress::pending);
      peers.transport->wait(deadline);
    }
    for (const Frame& frame : frames_to(peers, 2)) EXPECT_EQ(frame.kind, FrameKind::waiting);
    return frames_to(peers, 1).size();
  };
  EXPECT_EQ(questions_with(milliseconds(59'000)), 0u);
  EXPECT_EQ(questions_with(milliseconds(31'000)), 0u);
  EXPECT_EQ(questions_with(milliseconds(29'000)), 1u);
  EXPECT_EQ(questions_with(milliseconds(16'000)), 0u);
  EXPECT_EQ(questions_with(milliseconds(14'000)), 1u) << "rank 1 may wait for another rank by then";
  EXPECT_EQ(questions_with(milliseconds(6'900)), 1u);
  EXPECT_EQ(questions_with(milliseconds(3'400)), 1u);
  EXPECT_EQ(questions_with(milliseconds(1'000)), 0u) << "too late for an answer";
}

TEST(TcpFailure, AnswersForWhichRankItWaits) {
  for (const std::size_t ahead : {0, 100, 100'000}) {
    SCOPED_TRACE(ahead);
    ScriptedPeers peers(3);
    const auto segment = peers.allocate(100'000);
    error_of<Timeout>(
        peers, *segment,
        [&](const Step& step) {
          if (ahead > 0) {  // rank 2 asks behind data that this rank does not need yet
            peers.send(header_for(step, {0, ahead}), 2);
            peers.send_bytes(std::string(ahead, 'x').data(), ahead, 2);
          }
          peers.send({.kind = FrameKind::ask, .collective = 17}, 2);
        },
        kShort);
    const std::vector<Frame> answers = frames_to(peers, 2);
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers[0].kind, FrameKind::waiting);
    EXPECT_EQ(answers[0].subject, 1);
    EXPECT_EQ(answers[0].collective, 17u);
  }
}

/// A second answer could reach a rank that has left, and reset its connection before the last data is read.
TEST(TcpFailure, AnswersAQuestionOnce) {
  const tests::TestClock clock;
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const auto receive = [&](std::size_t index, int peer) {
    return step_of(*segment, index, {{Move::Kind::receive, peer, {0, 100}}});
  };
  const auto send_data = [&](const Step& step, int peer) {
    peers.send(header_for(step, {0, 100}), peer);
    peers.send_bytes(std::string(100, 'x').data(), 100, peer);
  };
  const auto wait_some_turns = [&] {
    tests::TestClock::pass(std::chrono::seconds(1));
    for (int turn = 0; turn < 5; ++turn) {
      peers.send({.kind = FrameKind::ask}, 3);  // ends the wait
      EXPECT_EQ(peers.transport->poll(), Progress::pending);
      peers.transport->wait(later());
    }
  };
  peers.transport->enqueue(receive(0, 1));
  send_data(receive(1, 2), 2);
  peers.send({.kind = FrameKind::ask, .collective = 17}, 2);  // behind data that is not needed yet
  wait_some_turns();
  EXPECT_EQ(frames_to(peers, 2).size(), 1u);
  send_data(receive(0, 1), 1);
  EXPECT_EQ(peers.transport->poll(), Progress::done);
  peers.transport->enqueue(receive(1, 2));
  EXPECT_EQ(peers.transport->poll(), Progress::done);
  peers.transport->enqueue(receive(2, 2));  // behind the question
  wait_some_turns();
  EXPECT_TRUE(frames_to(peers, 2).empty());
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
      kShort);
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
