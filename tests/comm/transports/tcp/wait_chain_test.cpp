// SPDX-License-Identifier: Apache-2.0
// Whom a rank names when its wait times out: it asks the rank that it waits for, and follows the answers. The test plays
// the peers.
#include <gmock/gmock.h>

#include <cstring>
#include <vector>

#include "comm/transport/error.h"
#include "comm/transports/tcp/tcp_transport.h"
#include "tests/comm/transports/tcp/scripted_peers.h"
#include "tests/support/test_clock.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using tests::error_of;
using tests::Frame;
using tests::FrameKind;
using tests::header_for;
using tests::kShortWait;
using tests::later;
using tests::ScriptedPeers;
using tests::step_of;

/// The frames that the transport has sent to a peer.
std::vector<Frame> frames_to(ScriptedPeers& peers, int peer) {
  const std::string received = peers.receive(1 << 16, peer);
  EXPECT_EQ(received.size() % sizeof(Frame), 0u);
  std::vector<Frame> frames(received.size() / sizeof(Frame));
  if (!frames.empty()) std::memcpy(frames.data(), received.data(), frames.size() * sizeof(Frame));
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

TEST(TcpWaitChain, NamesTheEndOfTheWaitChain) {
  const tests::TestClock clock;
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [](const Step&) { tests::TestClock::pass(std::chrono::seconds(31)); }, std::chrono::minutes(1),
      [&] { answer_up_to_rank_3(peers); });
  EXPECT_EQ(error.peer(), 3) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("the chain of waiting ranks ends at rank 3"));
}

TEST(TcpWaitChain, FollowsAWaitChainBehindUnreadData) {
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

TEST(TcpWaitChain, EndsAWaitChainThatIsACircle) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [](const Step&) {}, 2 * kShortWait,
      [&] {
        answer(peers, 1, 2);
        answer(peers, 2, 1);
      });
  EXPECT_GT(error.peer(), 0) << error.what();
}

TEST(TcpWaitChain, IgnoresAnswersToOlderQuestions) {
  ScriptedPeers peers(4);
  const auto segment = peers.allocate(100);
  const Timeout error = error_of<Timeout>(
      peers, *segment, [&](const Step&) { peers.send({.kind = FrameKind::waiting, .subject = 3, .collective = 0}, 1); },
      kShortWait);
  EXPECT_EQ(error.peer(), 1) << error.what();
}

/// On a full host a waiting rank may not run for seconds. Its answer from before still holds.
TEST(TcpWaitChain, NamesTheEndOfTheWaitChainThoughRanksAnswerLate) {
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

TEST(TcpWaitChain, SendsNothingInTheFirstHalfOfAWait) {
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

TEST(TcpWaitChain, AnswersForWhichRankItWaits) {
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
        kShortWait);
    const std::vector<Frame> answers = frames_to(peers, 2);
    ASSERT_FALSE(answers.empty());
    EXPECT_EQ(answers[0].kind, FrameKind::waiting);
    EXPECT_EQ(answers[0].subject, 1);
    EXPECT_EQ(answers[0].collective, 17u);
  }
}

/// A second answer could reach a rank that has left, and reset its connection before the last data is read.
TEST(TcpWaitChain, AnswersAQuestionOnce) {
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

}  // namespace
}  // namespace gradring::comm
