// SPDX-License-Identifier: Apache-2.0
// TcpTransport: waiting, reading control frames, and reporting to peers.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {
namespace {

using Clock = Deadline::Clock;

/// Non-blocking polls before a blocking one; few, because ranks may outnumber the cores.
constexpr int kSpins = 20;
/// Interval of a waiting rank's reports to its peers.
constexpr std::chrono::milliseconds kReportInterval(100);
/// Time without progress before the first report.
constexpr std::chrono::milliseconds kReportDelay(200);

int poll_sockets(std::vector<pollfd>& sockets, std::chrono::nanoseconds longest) {
  const timespec no_wait{};
  for (int spin = 0; spin < kSpins; ++spin)
    if (const int ready = ::ppoll(sockets.data(), sockets.size(), &no_wait, nullptr); ready != 0) return ready;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec timeout{.tv_sec = seconds.count(), .tv_nsec = (longest - seconds).count()};
  return ::ppoll(sockets.data(), sockets.size(), &timeout, nullptr);
}

}  // namespace

void TcpTransport::wait(Deadline deadline) {
  detector_.throw_if_failed();
  block(awaited(), deadline);
}

void TcpTransport::block(const std::vector<int>& awaited, Deadline deadline) {
  detector_.check(awaited, op_);
  send_waiting(awaited);
  if (wait_for_events(deadline.nap(kReportInterval)) || !deadline.passed()) return;
  detector_.check(awaited, op_);  // an earlier failure names the root cause
  detector_.throw_timeout(awaited, op_);
}

/// The peers that this rank needs data from; if none, those that must accept its data.
std::vector<int> TcpTransport::awaited() const {
  std::vector<int> peers;
  for (const PendingReceive& receive : receives_)
    peers.push_back(receive.blocked_by >= 0 ? receive.blocked_by : receive.move.peer);
  if (peers.empty())
    for (int peer = 0; peer < world_size(); ++peer)
      if (connections_[static_cast<std::size_t>(peer)].has_unsent_message()) peers.push_back(peer);
  return peers;
}

/// Waits until a peer sends data or accepts unsent data, and reads control frames of peers without a message in
/// progress. False on timeout.
bool TcpTransport::wait_for_events(std::chrono::nanoseconds longest) {
  if (read_buffered()) return true;
  std::vector<pollfd> sockets(connections_.size());
  for (int peer = 0; peer < world_size(); ++peer) {
    const tcp::Connection& to = connection(peer);
    const bool reads = to.readable() && (!to.has_front() || is_receiving_from(peer));
    const bool writes = to.writable() && to.has_unsent();
    pollfd& socket = sockets[static_cast<std::size_t>(peer)];
    socket.events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    socket.fd = socket.events != 0 ? to.fd() : -1;
  }
  if (poll_sockets(sockets, longest) <= 0) return false;
  for (int peer = 0; peer < world_size(); ++peer)
    if (sockets[static_cast<std::size_t>(peer)].revents != 0 && !is_receiving_from(peer)) next_data(peer);
  return true;
}

/// Reads frames that arrived together with earlier messages: polling the socket does not report them. False if none.
bool TcpTransport::read_buffered() {
  bool found = false;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (!connection(peer).has_buffered_front()) continue;
    next_data(peer);
    found = true;
  }
  return found;
}

/// Whether a message from the peer is being received.
bool TcpTransport::is_receiving_from(int peer) const {
  return std::ranges::any_of(
      receives_, [peer](const PendingReceive& receive) { return receive.begun && receive.move.peer == peer; });
}

/// Handles the peer's control frames up to its next data frame, and returns that frame's header; null if there is none.
const tcp::Frame* TcpTransport::next_data(int peer) {
  tcp::Connection& from = connection(peer);
  while (const tcp::Frame* frame = from.front()) {
    if (!is_valid(*frame, from.received(), world_size()))
      detector_.throw_desync(
          peer,
          fmt::format("rank {} received an invalid or out-of-order frame from rank {}: the connection is "
                      "corrupt, or rank {} runs another version of gradring",
                      rank_, peer, peer),
          op_);
    if (frame->kind == tcp::FrameKind::data) return frame;
    if (frame->kind == tcp::FrameKind::allocation)
      announced_[static_cast<std::size_t>(peer)].push_back(frame->elements);
    else
      detector_.record(peer, *frame);
    from.take_front();
  }
  if (from.ended()) detector_.record_lost(peer, from.error_number());
  return nullptr;
}

void TcpTransport::flush() {
  for (int peer = 0; peer < world_size(); ++peer) {
    tcp::Connection& to = connection(peer);
    if (!to.has_unsent()) continue;
    to.flush();
    // A peer that closed its connection may have sent a goodbye before.
    if (!to.writable() && to.has_unsent_message() && next_data(peer)) detector_.record_lost(peer, 0);
  }
}

bool TcpTransport::has_unsent_messages() const {
  return std::ranges::any_of(connections_, [](const tcp::Connection& to) { return to.has_unsent_message(); });
}

/// Tells the other ranks which rank this one waits for, so that the first to time out can follow the chain to its end.
/// Skips the awaited rank, which does not need it, and peers with unread data: such a peer may have left, and its
/// kernel would reset the connection before that data is read.
void TcpTransport::send_waiting(const std::vector<int>& awaited) {
  const auto now = Clock::now();
  if (awaited.empty() || now - last_progress_ < kReportDelay || now - reported_at_ < kReportInterval) return;
  reported_at_ = now;
  reported_peer_ = awaited.front();
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::waiting;
  frame.subject = reported_peer_;
  for (int peer = 0; peer < world_size(); ++peer) {
    tcp::Connection& to = connection(peer);
    if (peer == reported_peer_ || !to.writable() || to.has_front() || to.has_unsent()) continue;
    to.send(frame);
    to.flush();
  }
}

/// Revokes what send_waiting reported.
void TcpTransport::note_progress() {
  last_progress_ = Clock::now();
  if (std::exchange(reported_peer_, -1) < 0) return;
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::waiting;
  for (tcp::Connection& to : connections_) {
    if (!to.writable() || to.has_front()) continue;
    to.send(frame);
    to.flush();
  }
}

void TcpTransport::send_goodbye(GroupState reason, int failed_rank) {
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::goodbye;
  frame.reason = reason;
  frame.subject = failed_rank;
  for (tcp::Connection& to : connections_) {
    if (!to.writable()) continue;
    to.send(frame);
    // `left` is sent by the destructor, when the memory of unsent slices may be freed.
    if (reason != GroupState::left) to.flush();
  }
}

}  // namespace gradring::comm
