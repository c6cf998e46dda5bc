// SPDX-License-Identifier: Apache-2.0
// How a TcpTransport waits, what it hears meanwhile, and what it tells the others.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <utility>

#include "comm/transport/tcp/tcp_transport.h"

namespace gradring::comm {
namespace {

using Clock = Deadline::Clock;

/// Ranks may outnumber the cores: look only a few times before sleeping.
constexpr int kLooks = 20;
/// How long a rank sleeps before it tells the others that it still waits.
constexpr std::chrono::milliseconds kNap(100);
/// How long nothing must have come before it tells them at all.
constexpr std::chrono::milliseconds kPatience(200);

int poll_sockets(std::vector<pollfd>& sockets, std::chrono::nanoseconds longest) {
  const timespec at_once{};
  for (int look = 0; look < kLooks; ++look)
    if (const int ready = ::ppoll(sockets.data(), sockets.size(), &at_once, nullptr); ready != 0) return ready;
  const auto seconds = std::chrono::floor<std::chrono::seconds>(longest);
  const timespec nap{.tv_sec = seconds.count(), .tv_nsec = (longest - seconds).count()};
  return ::ppoll(sockets.data(), sockets.size(), &nap, nullptr);
}

}  // namespace

void TcpTransport::wait(Deadline deadline) {
  roll_.refuse_if_broken();
  block(awaited(), deadline);
}

void TcpTransport::block(const std::vector<int>& awaited, Deadline deadline) {
  roll_.judge(awaited, errand_);
  say_waiting(awaited);
  if (sleep(std::min<std::chrono::nanoseconds>(deadline.remaining(), kNap)) || !deadline.passed()) return;
  roll_.judge(awaited, errand_);  // who has failed first knows better whom to blame
  roll_.time_out(awaited, errand_);
}

/// Whom this rank hangs on: who is to send it something, or else who is to take something.
std::vector<int> TcpTransport::awaited() const {
  std::vector<int> peers;
  for (const Arrival& arrival : arrivals_)
    peers.push_back(arrival.held_up_by >= 0 ? arrival.held_up_by : arrival.move.peer);
  if (peers.empty())
    for (int peer = 0; peer < world_size(); ++peer)
      if (connections_[static_cast<std::size_t>(peer)].owes()) peers.push_back(peer);
  return peers;
}

/// Sleeps until a peer has sent something that is not there already, or takes more of what is owed; hears the news of
/// those from whom no message is under way. False if only time passed.
bool TcpTransport::sleep(std::chrono::nanoseconds longest) {
  if (hear_buffered()) return true;
  std::vector<pollfd> sockets(connections_.size());
  for (int peer = 0; peer < world_size(); ++peer) {
    const tcp::Connection& to = connection(peer);
    const bool listens = to.readable() && (!to.has_front() || is_receiving_from(peer));
    const bool sends = to.writable() && to.has_unsent();
    pollfd& socket = sockets[static_cast<std::size_t>(peer)];
    socket.events = static_cast<short>((listens ? POLLIN : 0) | (sends ? POLLOUT : 0));
    socket.fd = socket.events != 0 ? to.fd() : -1;
  }
  if (poll_sockets(sockets, longest) <= 0) return false;
  for (int peer = 0; peer < world_size(); ++peer)
    if (sockets[static_cast<std::size_t>(peer)].revents != 0 && !is_receiving_from(peer)) next_data(peer);
  return true;
}

/// Hears what came along with earlier messages: no poll of a socket tells of it. False if there was nothing.
bool TcpTransport::hear_buffered() {
  bool heard = false;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (!connection(peer).has_buffered_front()) continue;
    next_data(peer);
    heard = true;
  }
  return heard;
}

/// Whether a message from the peer has begun to come to its place.
bool TcpTransport::is_receiving_from(int peer) const {
  return std::ranges::any_of(arrivals_,
                             [peer](const Arrival& arrival) { return arrival.begun && arrival.move.peer == peer; });
}

/// The head of the oldest message from a peer that was not taken yet, once its news before that are heard; null if none
/// is there.
const tcp::Frame* TcpTransport::next_data(int peer) {
  tcp::Connection& from = connection(peer);
  while (const tcp::Frame* frame = from.front()) {
    if (!is_valid(*frame, from.received(), world_size()))
      roll_.report_desync(peer,
                          fmt::format("what rank {} sent to rank {} is no message, or one is missing before it: its "
                                      "connection is damaged, or it runs another version of gradring",
                                      peer, rank_),
                          errand_);
    if (frame->kind == tcp::FrameKind::data) return frame;
    if (frame->kind == tcp::FrameKind::allocation)
      announced_[static_cast<std::size_t>(peer)].push_back(frame->elements);
    else
      roll_.hear(peer, *frame);
    from.take_front();
  }
  if (from.ended()) roll_.lose(peer, from.error_number());
  return nullptr;
}

void TcpTransport::flush() {
  for (int peer = 0; peer < world_size(); ++peer) {
    tcp::Connection& to = connection(peer);
    if (!to.has_unsent()) continue;
    to.flush();
    // A peer that takes nothing any more may have said why before.
    if (!to.writable() && to.owes() && next_data(peer)) roll_.lose(peer, 0);
  }
}

bool TcpTransport::owes_somebody() const {
  return std::ranges::any_of(connections_, [](const tcp::Connection& to) { return to.owes(); });
}

/// Tells the others whom this rank waits for, so that whoever times out first can follow the line to its end. Not the
/// awaited rank itself, which is none the wiser for it; nor one whose bytes are not all read: it may have left, and its
/// system would answer by cutting off what is still under way.
void TcpTransport::say_waiting(const std::vector<int>& awaited) {
  const auto now = Clock::now();
  if (awaited.empty() || now - moved_ < kPatience || now - told_ < kNap) return;
  told_ = now;
  told_of_ = awaited.front();
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::waiting;
  frame.subject = told_of_;
  for (int peer = 0; peer < world_size(); ++peer) {
    tcp::Connection& to = connection(peer);
    if (peer == told_of_ || !to.writable() || to.has_front() || to.has_unsent()) continue;
    to.send(frame);
    to.flush();
  }
}

/// Takes back what say_waiting said.
void TcpTransport::note_progress() {
  moved_ = Clock::now();
  if (std::exchange(told_of_, -1) < 0) return;
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::waiting;
  for (tcp::Connection& to : connections_) {
    if (!to.writable() || to.has_front()) continue;
    to.send(frame);
    to.flush();
  }
}

void TcpTransport::say_farewell(Membership reason, int culprit) {
  tcp::Frame frame;
  frame.kind = tcp::FrameKind::farewell;
  frame.reason = reason;
  frame.subject = culprit;
  for (tcp::Connection& to : connections_) {
    if (!to.writable()) continue;
    to.send(frame);
    // A destructor says this too, and then slices that were to be sent may be gone.
    if (reason != Membership::left) to.flush();
  }
}

}  // namespace gradring::comm
