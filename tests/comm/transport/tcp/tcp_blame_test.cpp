// SPDX-License-Identifier: Apache-2.0
// What one rank makes of peers that fail, fall silent or talk nonsense, all played by the test.
#include "comm/transport/tcp/tcp_transport.h"

#include <gmock/gmock.h>

#include <cstring>
#include <functional>

#include "comm/error.h"
#include "tests/comm/transport/tcp/stage.h"

namespace gradring::comm {
namespace {

using ::testing::HasSubstr;
using tests::Frame;
using tests::FrameKind;
using tests::head_of;
using tests::kBytes;
using tests::later;
using tests::Stage;
using tests::step_of;

constexpr std::chrono::milliseconds kShort(300);

/// Lets the rank wait for a message of 100 bytes until it throws.
template <class E>
E error_of(Stage& stage, Segment& segment, const std::function<void(const Step&)>& meanwhile,
           std::chrono::nanoseconds timeout = std::chrono::seconds(60)) {
  const Step step = step_of(segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  const Deadline deadline = Deadline::after(timeout);
  try {
    stage.rank->enqueue(step);
    meanwhile(step);
    while (stage.rank->poll() == Progress::pending) stage.rank->wait(deadline);
    ADD_FAILURE() << "it came to an end";
  } catch (const E& error) {
    EXPECT_THROW(stage.rank->poll(), E) << "a broken group stays broken";
    return error;
  }
  return E({}, "");
}

TEST(TcpBlame, GarbageOnAConnectionIsNoMessage) {
  Stage stage;
  const auto segment = stage.allocate(100);
  const Desync error = error_of<Desync>(stage, *segment, [&](const Step&) {
    const std::string garbage(500, '\x5a');
    stage.say_bytes(garbage.data(), garbage.size());
  });
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("is no message"));
}

TEST(TcpBlame, HalfAHeadAndThenSilenceIsATimeout) {
  Stage stage;
  const auto segment = stage.allocate(100);
  const Timeout error = error_of<Timeout>(
      stage, *segment,
      [&](const Step& step) {
        const Frame head = head_of(step, {0, 100});
        stage.say_bytes(&head, 40);
      },
      kShort);
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("in test 1, step 0"));
  const std::string told = stage.hear(4096);
  ASSERT_GE(told.size(), sizeof(Frame));
  Frame farewell;
  std::memcpy(&farewell, told.data() + told.size() - sizeof farewell, sizeof farewell);
  EXPECT_EQ(farewell.kind, FrameKind::farewell) << "it says why it gives up";
  EXPECT_EQ(farewell.reason, Membership::timed_out);
  EXPECT_EQ(farewell.subject, 1);
}

TEST(TcpBlame, APeerThatGoesInTheMiddleOfAMessageIsLost) {
  for (const std::size_t payload : {0, 1, 99}) {
    Stage stage;
    const auto segment = stage.allocate(100);
    const PeerLost error = error_of<PeerLost>(stage, *segment, [&](const Step& step) {
      stage.say(head_of(step, {0, 100}));
      if (payload > 0) stage.say_bytes(std::string(payload, 'x').data(), payload);
      stage.rank->poll();
      stage.hang_up();
    });
    EXPECT_EQ(error.peer(), 1);
    EXPECT_THAT(error.what(), HasSubstr("rank 1 (a puppet) is gone"));
  }
}

TEST(TcpBlame, APeerThatGoesWhileItIsSentToIsLost) {
  Stage stage;
  const auto segment = stage.allocate(kBytes);
  stage.rank->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  EXPECT_EQ(stage.rank->poll(), Progress::received);
  stage.hang_up();
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(later());
  };
  EXPECT_THROW(finish(), PeerLost);
}

TEST(TcpBlame, APeerThatTakesNothingIsATimeout) {
  Stage stage;
  const auto segment = stage.allocate(kBytes);
  stage.rank->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  const Deadline deadline = Deadline::after(kShort);
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(deadline);
  };
  EXPECT_THROW(finish(), Timeout);
}

TEST(TcpBlame, FollowsWhomAnotherRankBlames) {
  Stage stage(4);
  const auto segment = stage.allocate(100);
  const Timeout error =
      error_of<Timeout>(stage, *segment, [&](const Step&) { stage.say_farewell(Membership::timed_out, 2, 3); });
  EXPECT_EQ(error.peer(), 2);
  EXPECT_THAT(error.what(), HasSubstr("rank 3 reports that it waited in vain for rank 2"));
}

TEST(TcpBlame, HearsLastWordsThatCameAlongWithAMessage) {
  Stage stage(3);
  const auto segment = stage.allocate(100);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 50}}, {Move::Kind::receive, 2, {50, 50}}});
  stage.rank->enqueue(step);
  stage.say(head_of(step, {50, 50}), 2);
  stage.say_bytes(std::string(50, 'x').data(), 50, 2);
  stage.say_farewell(Membership::out_of_step, 1, 2);
  const Deadline deadline = Deadline::after(std::chrono::seconds(2));
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(deadline);
  };
  EXPECT_THROW(finish(), Desync) << "they lie in the buffer, where no poll of the socket tells of them";
}

TEST(TcpBlame, BlamesTheEndOfTheLineOfThoseWhoWait) {
  Stage stage(4);
  const auto segment = stage.allocate(100);
  const auto say_waits_for = [&](int rank, int subject) {
    Frame frame;
    frame.kind = FrameKind::waiting;
    frame.subject = subject;
    stage.say(frame, rank);
  };
  const Timeout error = error_of<Timeout>(
      stage, *segment,
      [&](const Step&) {
        say_waits_for(1, 2);
        say_waits_for(2, 3);
      },
      kShort);
  EXPECT_EQ(error.peer(), 3) << error.what();
}

TEST(TcpBlame, WhoTookBackThatItWaitsIsBlamedItself) {
  Stage stage(4);
  const auto segment = stage.allocate(100);
  const Timeout error = error_of<Timeout>(
      stage, *segment,
      [&](const Step&) {
        for (const int subject : {2, -1}) {
          Frame frame;
          frame.kind = FrameKind::waiting;
          frame.subject = subject;
          stage.say(frame, 1);
        }
      },
      kShort);
  EXPECT_EQ(error.peer(), 1) << error.what();
}

TEST(TcpBlame, TellsTheOthersWhomItWaitsForAndTakesItBack) {
  Stage stage(3);
  const auto segment = stage.allocate(100);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  stage.rank->enqueue(step);
  const Deadline soon = Deadline::after(std::chrono::milliseconds(700));
  const auto heard_of = [&] {
    const std::string heard = stage.hear(1 << 16, 2);
    EXPECT_EQ(heard.size() % sizeof(Frame), 0u);
    Frame last;
    if (heard.size() >= sizeof last) std::memcpy(&last, heard.data() + heard.size() - sizeof last, sizeof last);
    return std::pair(heard.size() >= sizeof last && last.kind == FrameKind::waiting, last.subject);
  };
  std::pair<bool, int> told{false, -1};
  while (!told.first && !soon.passed()) {
    EXPECT_EQ(stage.rank->poll(), Progress::pending);
    stage.rank->wait(later());
    told = heard_of();
  }
  EXPECT_EQ(told, std::pair(true, 1));
  EXPECT_EQ(stage.hear(1 << 16, 1), "") << "the awaited rank is none the wiser for it";
  stage.say(head_of(step, {0, 100}));
  stage.say_bytes(std::string(100, 'x').data(), 100);
  EXPECT_EQ(stage.rank->poll(), Progress::done);
  EXPECT_EQ(heard_of(), std::pair(true, -1));
}

TEST(TcpBlame, APeerThatLeavesInGoodOrderIsMissedOnlyIfItIsNeeded) {
  Stage stage(3);
  const auto segment = stage.allocate(100);
  stage.say_farewell(Membership::left, -1, 2);
  stage.hang_up(2);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  stage.rank->enqueue(step);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(stage.rank->poll(), Progress::pending);
    stage.rank->wait(later());
  }
  stage.say(head_of(step, {0, 100}));
  stage.say_bytes(std::string(100, 'x').data(), 100);
  EXPECT_EQ(stage.rank->poll(), Progress::done);

  stage.rank->enqueue(step_of(*segment, 1, {{Move::Kind::receive, 2, {0, 100}}}));
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(later());
  };
  EXPECT_THROW(finish(), PeerLost);
}

}  // namespace
}  // namespace gradring::comm
