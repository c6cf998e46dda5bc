// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstring>
#include <vector>

namespace gradring::comm::tcp {
namespace {

struct Ends {
  UniqueFd one;
  UniqueFd other;
};

Ends connected_sockets() {
  int fds[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 2654435761u >> 24);
  return data;
}

Frame data_of(std::size_t bytes, std::uint64_t step) {
  Frame frame;
  frame.elements = bytes;
  frame.step = step;
  return frame;
}

/// Reads the whole payload of the front; the sender flushes meanwhile.
std::vector<std::byte> payload_of_front(Connection& to, Connection& from) {
  std::vector<std::byte> data(to.front()->payload_bytes());
  for (std::size_t done = 0, idle = 0; done < data.size() && idle < 1000; ++idle) {
    from.flush();
    const std::size_t came = to.receive(data.data() + done, data.size() - done);
    if (came > 0) idle = 0;
    done += came;
  }
  to.take_front();
  return data;
}

TEST(TcpConnection, DeliversFramesAndPayloadsInOrder) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  Connection to(std::move(ends.other));
  const std::size_t sizes[] = {0, 1, 5, 4000, 4096, 5000, 3'000'000, 0, 17};
  std::vector<std::vector<std::byte>> payloads;
  for (const std::size_t bytes : sizes) payloads.push_back(pattern(bytes));
  for (std::size_t i = 0; i < payloads.size(); ++i) from.send(data_of(payloads[i].size(), i), payloads[i]);
  for (std::size_t i = 0; i < payloads.size(); ++i) {
    for (int turn = 0; turn < 100 && !to.front(); ++turn) from.flush();
    ASSERT_TRUE(to.front());
    EXPECT_TRUE(is_valid(*to.front(), i + 1, 1));
    EXPECT_EQ(to.front()->step, i);
    EXPECT_EQ(payload_of_front(to, from), payloads[i]);
  }
  EXPECT_EQ(to.front(), nullptr);
  EXPECT_FALSE(to.ended());
  EXPECT_FALSE(from.has_unsent());
}

TEST(TcpConnection, ReadsAheadWithoutTakingAnything) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  Connection to(std::move(ends.other));
  const auto first = pattern(100'000);
  const auto second = pattern(500);
  from.send(data_of(first.size(), 0), first);
  from.send({.kind = FrameKind::ask, .collective = 3});
  from.send(data_of(second.size(), 1), second);
  from.send({.kind = FrameKind::ask, .collective = 4});
  from.flush();
  ASSERT_TRUE(to.front());
  std::vector<FrameKind> kinds;
  for (int turn = 0; turn < 100 && kinds.size() < 3; ++turn) {
    to.read_ahead();
    while (const auto frame = to.next_ahead(2)) kinds.push_back(frame->kind);
  }
  EXPECT_EQ(kinds, (std::vector{FrameKind::ask, FrameKind::data, FrameKind::ask}));
  EXPECT_EQ(payload_of_front(to, from), first);
  ASSERT_TRUE(to.front());
  EXPECT_EQ(to.front()->collective, 3u);
  to.take_front();
  ASSERT_TRUE(to.front());
  EXPECT_EQ(payload_of_front(to, from), second);
  EXPECT_EQ(to.front()->collective, 4u);
  EXPECT_EQ(to.next_ahead(2), std::nullopt);
}

TEST(TcpConnection, ReadsAheadUpToALimit) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  Connection to(std::move(ends.other));
  const auto payload = pattern(8 << 20);
  from.send(data_of(payload.size(), 0), payload);
  from.flush();
  ASSERT_TRUE(to.front());
  int reads = 0;
  for (; reads < 10'000 && to.may_read_ahead(); ++reads) {
    to.read_ahead();
    from.flush();
  }
  EXPECT_LT(reads, 10'000);
  EXPECT_TRUE(from.has_unsent());
  EXPECT_EQ(payload_of_front(to, from), payload);
}

TEST(TcpConnection, KeepsAPayloadUntilTheKernelAcceptsIt) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  Connection to(std::move(ends.other));
  const auto payload = pattern(8 << 20);
  from.send(data_of(payload.size(), 0), payload);
  from.flush();
  EXPECT_TRUE(from.has_unsent_message()) << "a socket took eight megabytes at once: send more here";
  EXPECT_TRUE(from.has_unsent_in(payload.data(), 1));
  EXPECT_TRUE(from.has_unsent_in(payload.data() + payload.size() - 1, 100));
  EXPECT_FALSE(from.has_unsent_in(payload.data() + payload.size(), 100));
  ASSERT_TRUE(to.front());
  EXPECT_EQ(payload_of_front(to, from), payload);
  EXPECT_FALSE(from.has_unsent_message());
  EXPECT_FALSE(from.has_unsent_in(payload.data(), payload.size()));
}

TEST(TcpConnection, AssemblesAFrameByteByByte) {
  Ends ends = connected_sockets();
  Connection to(std::move(ends.other));
  Frame frame = data_of(3, 7);
  frame.sequence = 1;
  const auto payload = pattern(3);
  std::byte stream[sizeof frame + 3];
  std::memcpy(stream, &frame, sizeof frame);
  std::memcpy(stream + sizeof frame, payload.data(), 3);
  std::byte came[3];
  std::size_t count = 0;
  for (const std::byte byte : stream) {
    ASSERT_EQ(::send(ends.one.get(), &byte, 1, 0), 1);
    if (to.front()) count += to.receive(came + count, 3 - count);
  }
  ASSERT_TRUE(to.front());
  EXPECT_EQ(to.front()->step, 7u);
  EXPECT_EQ(std::vector(came, came + count), payload);
}

TEST(TcpConnection, EndsWhenNoCompleteFrameCanArrive) {
  for (const std::size_t sent : {std::size_t{0}, std::size_t{1}, sizeof(Frame) - 1, sizeof(Frame) + 2}) {
    SCOPED_TRACE(sent);
    Ends ends = connected_sockets();
    Connection to(std::move(ends.other));
    Frame frame = data_of(3, 0);
    frame.sequence = 1;
    std::byte stream[sizeof frame + 3] = {};
    std::memcpy(stream, &frame, sizeof frame);
    ASSERT_EQ(::send(ends.one.get(), stream, sent, 0), static_cast<ssize_t>(sent));
    EXPECT_FALSE(to.ended());
    ends.one.reset();
    std::byte room[3];
    if (to.front()) to.receive(room, 3);
    if (to.front()) to.receive(room, 1);
    EXPECT_TRUE(to.ended());
  }
}

TEST(TcpConnection, DeliversFramesSentBeforeClose) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  Connection to(std::move(ends.other));
  Frame frame;
  frame.kind = FrameKind::goodbye;
  from.send(frame);
  from.close();
  ASSERT_TRUE(to.front());
  EXPECT_EQ(to.front()->kind, FrameKind::goodbye);
  to.take_front();
  EXPECT_EQ(to.front(), nullptr);
  EXPECT_TRUE(to.ended());
  EXPECT_EQ(to.error_number(), 0);
}

TEST(TcpConnection, CloseDoesNotReadPayloads) {
  Ends ends = connected_sockets();
  Connection from(std::move(ends.one));
  {
    const auto payload = pattern(8 << 20);
    from.send(data_of(payload.size(), 0), payload);
    from.flush();
  }
  Connection to(std::move(ends.other));  // makes room, so that a flush would read what is freed
  std::vector<std::byte> room(1 << 20);
  ASSERT_TRUE(to.front());
  to.receive(room.data(), room.size());
  from.close();
}

TEST(TcpFrame, RejectsInvalidFields) {
  Frame good;
  good.sequence = 5;
  EXPECT_TRUE(is_valid(good, 5, 2));
  EXPECT_FALSE(is_valid(good, 6, 2)) << "one is missing";
  const auto refuses = [&](auto spoil) {
    Frame frame = good;
    spoil(frame);
    return !is_valid(frame, 5, 2);
  };
  EXPECT_TRUE(refuses([](Frame& frame) { frame.magic ^= 1; }));
  EXPECT_TRUE(refuses([](Frame& frame) { frame.kind = static_cast<FrameKind>(9); }));
  EXPECT_TRUE(refuses([](Frame& frame) { frame.dtype = static_cast<kernels::DType>(77); }));
  EXPECT_TRUE(refuses([](Frame& frame) { frame.reason = static_cast<GroupState>(77); }));
  EXPECT_TRUE(refuses([](Frame& frame) { frame.subject = 2; }));
  EXPECT_TRUE(refuses([](Frame& frame) { frame.operation.fill('x'); }));
}

}  // namespace
}  // namespace gradring::comm::tcp
