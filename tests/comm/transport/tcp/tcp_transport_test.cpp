// SPDX-License-Identifier: Apache-2.0
// One rank whose only peer is played by the test, word by word.
#include "comm/transport/tcp/tcp_transport.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <cstring>
#include <functional>

#include "comm/error.h"
#include "comm/transport/mapped/message.h"

namespace gradring::comm {
namespace {

using tcp::Frame;
using tcp::FrameKind;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kShort(300);
constexpr std::size_t kBytes = 8 << 20;  // more than a socket takes

const Deadline kLater = Deadline::after(std::chrono::seconds(60));

/// Rank 0 of `world` and the other ends of its connections.
class Stage {
 public:
  explicit Stage(int world = 2) : ends_(static_cast<std::size_t>(world)), said_(ends_.size()) {
    std::vector<tcp::Peer> peers(ends_.size());
    for (std::size_t peer = 1; peer < ends_.size(); ++peer) {
      int fds[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      peers[peer] = {UniqueFd(fds[0]), "a puppet"};
      ends_[peer] = UniqueFd(fds[1]);
    }
    rank = std::make_unique<TcpTransport>(std::move(peers), 0);
  }

  void say_bytes(const void* data, std::size_t bytes, int from = 1) {
    ASSERT_EQ(::send(ends_[index(from)].get(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  void say(Frame frame, int from = 1) {
    frame.sequence = ++said_[index(from)];
    say_bytes(&frame, sizeof frame, from);
  }
  void say_allocation(std::size_t bytes, int from = 1) {
    Frame frame;
    frame.kind = FrameKind::allocation;
    frame.segment = 1;
    frame.elements = bytes;
    say(frame, from);
  }
  void say_farewell(Membership reason, int culprit, int from = 1) {
    Frame frame;
    frame.kind = FrameKind::farewell;
    frame.reason = reason;
    frame.subject = culprit;
    say(frame, from);
  }
  /// What the rank has sent, as far as it is there.
  std::string hear(std::size_t bytes, int from = 1) {
    std::string heard(bytes, '\0');
    const ssize_t count = ::recv(ends_[index(from)].get(), heard.data(), bytes, 0);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return heard;
  }
  void hang_up(int peer = 1) { ends_[index(peer)].reset(); }

  std::unique_ptr<Segment> allocate(std::size_t bytes) {
    for (int peer = 1; peer < rank->world_size(); ++peer) say_allocation(bytes, peer);
    auto segment = rank->allocate(bytes, kLater);
    for (int peer = 1; peer < rank->world_size(); ++peer) EXPECT_EQ(hear(sizeof(Frame), peer).size(), sizeof(Frame));
    return segment;
  }

  std::unique_ptr<TcpTransport> rank;

 private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  std::vector<UniqueFd> ends_;
  std::vector<std::uint64_t> said_;
};

/// A step of bytes; the collective's range is the whole segment.
Step step_of(Segment& segment, std::size_t index, std::vector<Move> moves, kernels::DType dtype = kernels::DType::u8) {
  return {.range = {.segment = &segment, .slice = {0, segment.size() / size_of(dtype)}, .dtype = dtype},
          .moves = std::move(moves),
          .operation = "test",
          .collective = 1,
          .index = index};
}

/// The head of the message that meets a receive of that slice.
Frame head_of(const Step& step, const Slice& slice) {
  MessageHeader header;
  set_operation(header, step.operation);
  header.collective = step.collective;
  header.step = step.index;
  header.segment = 1;
  header.range_elements = step.range.slice.elements;
  header.elements = slice.elements;
  header.dtype = step.range.dtype;
  return tcp::data_frame(header);
}

TEST(TcpTransport, DoesNotOverwriteWhatTheSystemHasNotTaken) {
  Stage stage;
  const auto segment = stage.allocate(kBytes);
  std::memset(segment->data(), 'o', kBytes);
  stage.rank->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  EXPECT_EQ(stage.rank->poll(), Progress::received) << "what it sends is not yet free";

  const Step second = step_of(*segment, 1, {{Move::Kind::receive, 1, {0, 100}}});
  stage.rank->enqueue(second);
  stage.say(head_of(second, {0, 100}));
  stage.say_bytes(std::string(100, 'n').data(), 100);
  EXPECT_EQ(stage.rank->poll(), Progress::pending);
  EXPECT_EQ(segment->as<char>()[0], 'o');

  std::string heard;
  Progress progress = Progress::pending;
  for (int turn = 0; turn < 10'000 && heard.size() < sizeof(Frame) + kBytes; ++turn) {
    heard += stage.hear(1 << 20);
    progress = stage.rank->poll();
  }
  ASSERT_EQ(heard.size(), sizeof(Frame) + kBytes);
  EXPECT_EQ(heard.find_first_not_of('o', sizeof(Frame)), std::string::npos) << "the peer got what came later";
  EXPECT_EQ(progress, Progress::done);
  EXPECT_EQ(segment->as<char>()[0], 'n');
}

TEST(TcpTransport, AddsElementsThatComeInPieces) {
  Stage stage;
  const auto segment = stage.allocate(3 * sizeof(float));
  for (int i = 0; i < 3; ++i) segment->as<float>()[i] = 1;
  const Step step = step_of(*segment, 0, {{Move::Kind::receive_add, 1, {0, 3}}}, kernels::DType::f32);
  stage.rank->enqueue(step);
  stage.say(head_of(step, {0, 3}));
  const float more[3] = {10, 20, 30};
  for (std::size_t byte = 0; byte < sizeof more; ++byte) {
    EXPECT_EQ(stage.rank->poll(), Progress::pending);
    stage.say_bytes(reinterpret_cast<const char*>(more) + byte, 1);
  }
  EXPECT_EQ(stage.rank->poll(), Progress::done);
  EXPECT_THAT(std::vector(segment->as<float>(), segment->as<float>() + 3), ::testing::ElementsAre(11, 21, 31));
}

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

TEST(TcpTransport, GarbageOnAConnectionIsNoMessage) {
  Stage stage;
  const auto segment = stage.allocate(100);
  const Desync error = error_of<Desync>(stage, *segment, [&](const Step&) {
    const std::string garbage(500, '\x5a');
    stage.say_bytes(garbage.data(), garbage.size());
  });
  EXPECT_EQ(error.peer(), 1);
  EXPECT_THAT(error.what(), HasSubstr("is no message"));
}

TEST(TcpTransport, HalfAHeadAndThenSilenceIsATimeout) {
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

TEST(TcpTransport, APeerThatGoesInTheMiddleOfAMessageIsLost) {
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

TEST(TcpTransport, APeerThatGoesWhileItIsSentToIsLost) {
  Stage stage;
  const auto segment = stage.allocate(kBytes);
  stage.rank->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  EXPECT_EQ(stage.rank->poll(), Progress::received);
  stage.hang_up();
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(kLater);
  };
  EXPECT_THROW(finish(), PeerLost);
}

TEST(TcpTransport, APeerThatTakesNothingIsATimeout) {
  Stage stage;
  const auto segment = stage.allocate(kBytes);
  stage.rank->enqueue(step_of(*segment, 0, {{Move::Kind::send, 1, {0, kBytes}}}));
  const Deadline deadline = Deadline::after(kShort);
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(deadline);
  };
  EXPECT_THROW(finish(), Timeout);
}

TEST(TcpTransport, FollowsWhomAnotherRankBlames) {
  Stage stage(4);
  const auto segment = stage.allocate(100);
  const Timeout error =
      error_of<Timeout>(stage, *segment, [&](const Step&) { stage.say_farewell(Membership::timed_out, 2, 3); });
  EXPECT_EQ(error.peer(), 2);
  EXPECT_THAT(error.what(), HasSubstr("rank 3 reports that it waited in vain for rank 2"));
}

TEST(TcpTransport, BlamesTheEndOfTheLineOfThoseWhoWait) {
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

TEST(TcpTransport, WhoTookBackThatItWaitsIsBlamedItself) {
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

TEST(TcpTransport, TellsTheOthersWhomItWaitsForAndTakesItBack) {
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
    stage.rank->wait(kLater);
    told = heard_of();
  }
  EXPECT_EQ(told, std::pair(true, 1));
  EXPECT_EQ(stage.hear(1 << 16, 1), "") << "the awaited rank is none the wiser for it";
  stage.say(head_of(step, {0, 100}));
  stage.say_bytes(std::string(100, 'x').data(), 100);
  EXPECT_EQ(stage.rank->poll(), Progress::done);
  EXPECT_EQ(heard_of(), std::pair(true, -1));
}

TEST(TcpTransport, APeerThatLeavesInGoodOrderIsMissedOnlyIfItIsNeeded) {
  Stage stage(3);
  const auto segment = stage.allocate(100);
  stage.say_farewell(Membership::left, -1, 2);
  stage.hang_up(2);
  const Step step = step_of(*segment, 0, {{Move::Kind::receive, 1, {0, 100}}});
  stage.rank->enqueue(step);
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(stage.rank->poll(), Progress::pending);
    stage.rank->wait(kLater);
  }
  stage.say(head_of(step, {0, 100}));
  stage.say_bytes(std::string(100, 'x').data(), 100);
  EXPECT_EQ(stage.rank->poll(), Progress::done);

  stage.rank->enqueue(step_of(*segment, 1, {{Move::Kind::receive, 2, {0, 100}}}));
  const auto finish = [&] {
    while (stage.rank->poll() != Progress::done) stage.rank->wait(kLater);
  };
  EXPECT_THROW(finish(), PeerLost);
}

TEST(TcpTransport, ItsOwnLastWordIsThatItLeaves) {
  Stage stage;
  stage.rank.reset();
  const std::string heard = stage.hear(4096);
  ASSERT_EQ(heard.size(), sizeof(Frame));
  Frame farewell;
  std::memcpy(&farewell, heard.data(), sizeof farewell);
  EXPECT_EQ(farewell.kind, FrameKind::farewell);
  EXPECT_EQ(farewell.reason, Membership::left);
}

TEST(TcpTransport, MovesThatCannotBeAreRefused) {
  Stage stage;
  const auto segment = stage.allocate(100);
  const auto refuses = [&](const Move& move, kernels::DType dtype = kernels::DType::u8) {
    EXPECT_THROW(stage.rank->enqueue(step_of(*segment, 0, {move}, dtype)), InvalidArgument);
  };
  refuses({Move::Kind::send, 0, {0, 1}});
  refuses({Move::Kind::send, 2, {0, 1}});
  refuses({Move::Kind::send, -1, {0, 1}});
  refuses({Move::Kind::send, 1, {0, 101}});
  refuses({Move::Kind::receive, 1, {~std::size_t{0}, 1}});
  refuses({Move::Kind::receive_add, 1, {0, 1}});
  refuses({Move::Kind::lend, 1, {0, 1}});
  refuses({Move::Kind::sum_lent, 1, {0, 1}}, kernels::DType::f32);
  EXPECT_EQ(stage.hear(1), "") << "nothing of it was sent";
}

}  // namespace
}  // namespace gradring::comm
