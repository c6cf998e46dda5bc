// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/transport/message.h"
#include "comm/transports/tcp/tcp_transport.h"

namespace gradring::tests {

using comm::tcp::Frame;
using comm::tcp::FrameKind;

inline constexpr std::size_t kBytes = 8 << 20;  ///< more than a socket buffers

inline constexpr std::chrono::milliseconds kShortWait(300);  ///< a timeout that a test waits for

inline Deadline later() { return Deadline::after(std::chrono::seconds(60)); }

/// The transport of rank 0 in a world of `world`, and the peers' ends of its connections, which the test controls.
class ScriptedPeers {
 public:
  explicit ScriptedPeers(int world = 2)
      : ends_(static_cast<std::size_t>(world)), sent_(ends_.size()), announced_(ends_.size()) {
    std::vector<comm::tcp::Peer> peers(ends_.size());
    for (std::size_t peer = 1; peer < ends_.size(); ++peer) {
      int fds[2];
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
      peers[peer] = {UniqueFd(fds[0]), "a scripted peer"};
      ends_[peer] = UniqueFd(fds[1]);
    }
    transport = std::make_unique<comm::TcpTransport>(std::move(peers), 0);
  }

  void send_bytes(const void* data, std::size_t bytes, int from = 1) {
    ASSERT_EQ(::send(ends_[index(from)].get(), data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
  }
  void send(Frame frame, int from = 1) {
    frame.sequence = ++sent_[index(from)];
    send_bytes(&frame, sizeof frame, from);
  }
  void send_allocation(std::size_t bytes, int from = 1) {
    Frame frame;
    frame.kind = FrameKind::allocation;
    frame.segment = ++announced_[index(from)];
    frame.elements = bytes;
    send(frame, from);
  }
  void send_goodbye(comm::GroupState reason, int failed_rank, int from = 1) {
    Frame frame;
    frame.kind = FrameKind::goodbye;
    frame.reason = reason;
    frame.subject = failed_rank;
    send(frame, from);
  }
  /// What the transport has sent so far, at most `bytes`.
  std::string receive(std::size_t bytes, int from = 1) {
    std::string received(bytes, '\0');
    const ssize_t count = ::recv(ends_[index(from)].get(), received.data(), bytes, 0);
    received.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return received;
  }
  void disconnect(int peer = 1) { ends_[index(peer)].reset(); }

  std::unique_ptr<comm::Segment> allocate(std::size_t bytes) {
    for (int peer = 1; peer < transport->world_size(); ++peer) send_allocation(bytes, peer);
    auto segment = transport->allocate(bytes, later());
    for (int peer = 1; peer < transport->world_size(); ++peer)
      EXPECT_EQ(receive(sizeof(Frame), peer).size(), sizeof(Frame));
    return segment;
  }

  std::unique_ptr<comm::TcpTransport> transport;

 private:
  static std::size_t index(int peer) { return static_cast<std::size_t>(peer); }
  std::vector<UniqueFd> ends_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> announced_;
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

/// The header of the message that matches a receive of that slice.
inline Frame header_for(const comm::Step& step, const comm::Slice& slice) {
  return comm::tcp::data_frame(comm::header_of(step, {comm::Move::Kind::receive, 1, slice}));
}

/// Lets the rank wait for a message of 100 bytes until it throws, while a thread calls `peer_turn` all the time.
template <class E>
E error_of(ScriptedPeers& peers, comm::Segment& segment, const std::function<void(const comm::Step&)>& meanwhile,
           std::chrono::nanoseconds timeout = std::chrono::seconds(60), const std::function<void()>& peer_turn = {}) {
  const comm::Step step = step_of(segment, 0, {{comm::Move::Kind::receive, 1, {0, 100}}});
  const Deadline deadline = Deadline::after(timeout);
  std::jthread peer;
  try {
    peers.transport->enqueue(step);
    meanwhile(step);
    if (peer_turn)
      peer = std::jthread([&](const std::stop_token& stop) {
        for (; !stop.stop_requested(); sleep_for(std::chrono::milliseconds(1))) peer_turn();
      });
    while (peers.transport->poll() == comm::Progress::pending) peers.transport->wait(deadline);
    ADD_FAILURE() << "the step completed";
  } catch (const E& error) {
    EXPECT_THROW(peers.transport->poll(), E) << "a failed group throws again";
    return error;
  }
  return E({}, "");
}

}  // namespace gradring::tests
