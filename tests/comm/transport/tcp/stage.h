// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "comm/transport/message.h"
#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::tests {

using comm::tcp::Frame;
using comm::tcp::FrameKind;

inline constexpr std::size_t kBytes = 8 << 20;  ///< more than a socket takes

inline Deadline later() { return Deadline::after(std::chrono::seconds(60)); }

/// Rank 0 of `world` and the other ends of its connections.
class Stage {
 public:
  explicit Stage(int world = 2) : ends_(static_cast<std::size_t>(world)), said_(ends_.size()) {
    std::vector<comm::tcp::Peer> peers(ends_.size());
    for (std::size_t peer = 1; peer < ends_.size(); ++peer) {
      int fds[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      peers[peer] = {UniqueFd(fds[0]), "a puppet"};
      ends_[peer] = UniqueFd(fds[1]);
    }
    rank = std::make_unique<comm::TcpTransport>(std::move(peers), 0);
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
  void say_farewell(comm::Membership reason, int culprit, int from = 1) {
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

  std::unique_ptr<comm::Segment> allocate(std::size_t bytes) {
    for (int peer = 1; peer < rank->world_size(); ++peer) say_allocation(bytes, peer);
    auto segment = rank->allocate(bytes, later());
    for (int peer = 1; peer < rank->world_size(); ++peer) EXPECT_EQ(hear(sizeof(Frame), peer).size(), sizeof(Frame));
    return segment;
  }

  std::unique_ptr<comm::TcpTransport> rank;

 private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  std::vector<UniqueFd> ends_;
  std::vector<std::uint64_t> said_;
};

/// A step of bytes; the collective's range is the whole segment.
inline comm::Step step_of(comm::Segment& segment, std::size_t index, std::vector<comm::Move> moves,
                          kernels::DType dtype = kernels::DType::u8) {
  return {.range = {.segment = &segment, .slice = {0, segment.size() / size_of(dtype)}, .dtype = dtype},
          .moves = std::move(moves),
          .operation = "test",
          .collective = 1,
          .index = index};
}

/// The head of the message that meets a receive of that slice.
inline Frame head_of(const comm::Step& step, const comm::Slice& slice) {
  return comm::tcp::data_frame(comm::header_of(step, {comm::Move::Kind::receive, 1, slice}, 1));
}

}  // namespace gradring::tests
