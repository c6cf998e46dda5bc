// SPDX-License-Identifier: Apache-2.0
// What one rank sends and receives, with peers that are played by the test.
#include "comm/transport/tcp/tcp_transport.h"

#include <gmock/gmock.h>

#include <cstring>

#include "comm/error.h"
#include "tests/comm/transport/tcp/stage.h"

namespace gradring::comm {
namespace {

using tests::Frame;
using tests::FrameKind;
using tests::head_of;
using tests::kBytes;
using tests::Stage;
using tests::step_of;

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
