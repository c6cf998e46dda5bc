// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/tcp/tcp_transport.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/message.h"
#include "comm/transport/sum.h"

namespace gradring::comm {
namespace {

/// Scratch for received elements that are added; it fits the second-level cache together with the target.
constexpr std::size_t kScratchBytes = 128 * 1024;
/// The most that one call receives in place, so that this rank's sends continue in between.
constexpr std::size_t kMaxReceiveBytes = 512 * 1024;

std::vector<tcp::Connection> connections_of(std::vector<tcp::Peer>& peers) {
  std::vector<tcp::Connection> connections;
  for (tcp::Peer& peer : peers) connections.emplace_back(std::move(peer.socket));
  return connections;
}

std::vector<std::string> descriptions_of(const std::vector<tcp::Peer>& peers) {
  std::vector<std::string> descriptions;
  for (const tcp::Peer& peer : peers) descriptions.push_back(peer.description);
  return descriptions;
}

using Clock = Deadline::Clock;

/// Sockets that non-blocking polls look at before a blocking one: 20 polls of 2 ranks, none of many, which share cores.
constexpr int kPolledSockets = 40;
/// A rank spins only shortly after progress.
constexpr std::chrono::milliseconds kSpinTime(10);
/// Time without progress after which a rank expects a long wait: it polls by epoll, and reads ahead for control frames
/// behind data that it does not need yet.
constexpr std::chrono::milliseconds kStallTime(100);

}  // namespace

TcpTransport::TcpTransport(std::vector<tcp::Peer> peers, int rank)
    : rank_(rank),
      connections_(connections_of(peers)),
      detector_(rank, descriptions_of(peers),
                [this](GroupState reason, int failed_rank) { send_goodbye(reason, failed_rank); }),
      wait_chain_(rank, static_cast<int>(peers.size()),
                  [this](int peer, const tcp::Frame& frame) {
                    tcp::Connection& to = connection(peer);
                    if (!to.writable() || !to.readable()) return;
                    to.send(frame);
                    to.flush();
                  }),
      sockets_(peers.size()),
      announced_(peers.size()),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)) {}

TcpTransport::~TcpTransport() {
  detector_.failure().adopt();
  if (!detector_.failure().failed()) send_goodbye(GroupState::left, -1);  // a failure has sent its goodbye already
  for (tcp::Connection& connection : connections_) connection.close();
}

void TcpTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  stream.enqueue(std::move(collective));
}

void TcpTransport::enqueue(const Step& step) {
  detector_.failure().adopt_and_throw_if_failed();
  check_step(step, *this);
  step_ = step;
  op_ = PendingOp{.operation = step.operation, .number = step.collective, .step = step.index};
  last_progress_ = op_.since;
  receives_.clear();
  for (const Move& move : step.moves) {
    if (move.kind == Move::Kind::send) {
      connection(move.peer).send(tcp::data_frame(header_of(step, move)), {target(move), bytes_of(move)});
      connection(move.peer).flush();
    } else {
      receives_.push_back({.move = move});
    }
  }
}

Progress TcpTransport::poll() {
  detector_.failure().adopt_and_throw_if_failed();
  for (bool moved = true; std::exchange(moved, false);) {
    flush();
    std::vector<int> seen;  // messages of one peer arrive in order
    for (PendingReceive& receive : receives_) {
      if (std::ranges::find(seen, receive.move.peer) != seen.end()) continue;
      seen.push_back(receive.move.peer);
      moved |= advance(receive);
    }
    std::erase_if(receives_, [this](const PendingReceive& receive) { return is_complete(receive); });
    if (moved) note_progress();
  }
  if (!receives_.empty()) return Progress::pending;
  return has_unsent_messages() ? Progress::received : Progress::done;
}

/// True if data arrived.
bool TcpTransport::advance(PendingReceive& receive) {
  const bool begun = receive.begun;
  if (!begun && !begin(receive)) return false;
  const std::size_t count =
      receive.move.kind == Move::Kind::receive ? receive_in_place(receive) : receive_and_add(receive);
  tcp::Connection& from = connection(receive.move.peer);
  if (is_complete(receive))
    from.take_front();
  else if (count == 0 && from.ended())
    detector_.record_lost(receive.move.peer, from.error_number());
  return count > 0 || !begun;
}

/// Whether the message's header has arrived and its target may be written.
bool TcpTransport::begin(PendingReceive& receive) {
  const Move& move = receive.move;
  const tcp::Frame* frame = next_data(move.peer);
  if (!frame) {
    if (announced_[static_cast<std::size_t>(move.peer)].count > segments_)
      detector_.failure().throw_desync(
          move.peer,
          fmt::format("ranks are out of sync: rank {} is in {} {}, transfer {}, but rank {} allocates "
                      "memory; make the same calls in the same order on all ranks",
                      rank_, step_.operation, step_.collective, step_.index, move.peer),
          op_);
    return false;
  }
  const MessageHeader sent = tcp::message_of(*frame);
  const MessageHeader expected = header_of(step_, move);
  if (sent != expected)
    detector_.failure().throw_desync(move.peer, describe_mismatch(rank_, expected, move.peer, sent), op_);
  const auto holder = std::ranges::find_if(
      connections_, [&](const tcp::Connection& to) { return to.has_unsent_in(target(move), bytes_of(move)); });
  receive.blocked_by = holder == connections_.end() ? -1 : static_cast<int>(holder - connections_.begin());
  receive.begun = receive.blocked_by < 0;
  return receive.begun;
}

std::size_t TcpTransport::receive_in_place(PendingReceive& receive) {
  const std::size_t left = bytes_of(receive.move) - receive.written;
  if (left == 0) return 0;
  const std::size_t count =
      connection(receive.move.peer).receive(target(receive.move) + receive.written, std::min(left, kMaxReceiveBytes));
  receive.written += count;
  return count;
}

std::size_t TcpTransport::receive_and_add(PendingReceive& receive) {
  const std::size_t element_bytes = size_of(step_.range.dtype);
  const std::size_t left = bytes_of(receive.move) - receive.written;  // includes the partial element
  if (left == 0) return 0;
  std::memcpy(scratch_.get(), receive.partial.data(), receive.partial_bytes);
  const std::size_t count =
      connection(receive.move.peer)
          .receive(scratch_.get() + receive.partial_bytes, std::min(left, kScratchBytes) - receive.partial_bytes);
  const std::size_t available = receive.partial_bytes + count;
  const std::size_t whole = available / element_bytes;
  add_into(target(receive.move) + receive.written, scratch_.get(), whole, step_.range.dtype);
  receive.written += whole * element_bytes;
  receive.partial_bytes = available - whole * element_bytes;
  std::memcpy(receive.partial.data(), scratch_.get() + whole * element_bytes, receive.partial_bytes);
  return count;
}

bool TcpTransport::is_complete(const PendingReceive& receive) const {
  return receive.begun && receive.written == bytes_of(receive.move);
}

std::byte* TcpTransport::target(const Move& move) const {
  if (!step_.range.segment) return nullptr;
  return step_.range.segment->data() + (step_.range.slice.offset + move.slice.offset) * size_of(step_.range.dtype);
}

std::size_t TcpTransport::bytes_of(const Move& move) const { return move.slice.elements * size_of(step_.range.dtype); }

void TcpTransport::wait(Deadline deadline) {
  detector_.failure().adopt_and_throw_if_failed();
  block(awaited(), deadline);
}

void TcpTransport::block(const std::vector<int>& awaited, Deadline deadline) {
  detector_.check(awaited, op_);
  wait_chain_.advance(awaited, op_.since, deadline);
  if (wait_for_events(awaited, deadline) || !deadline.passed()) return;
  detector_.check(awaited, op_);  // an earlier failure names the root cause
  detector_.failure().throw_timeout(awaited, wait_chain_.end(awaited),
                                    "is slow, stopped or unreachable; look at its log, or raise the timeout", op_);
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
/// progress. False if nothing came before it was time for the wait chain, a failure elsewhere, or the deadline.
bool TcpTransport::wait_for_events(const std::vector<int>& awaited, Deadline deadline) {
  const std::chrono::nanoseconds idle = Clock::now() - last_progress_;
  const bool stalled = idle >= kStallTime;
  if (read_buffered(stalled)) return true;
  for (int peer = 0; peer < world_size(); ++peer) {
    const tcp::Connection& to = connection(peer);
    const bool reads =
        to.readable() && (!to.has_front() || is_receiving_from(peer) || (stalled && to.may_read_ahead()));
    const bool writes = to.writable() && to.has_unsent();
    sockets_.set(static_cast<std::size_t>(peer), to.fd(),
                 static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)));
  }
  const auto stop = [&] {
    return detector_.failure().failed_elsewhere() || wait_chain_.due(awaited, op_.since, deadline);
  };
  const bool ready = stalled ? sockets_.wait_long(deadline, stop)
                             : sockets_.wait(deadline.nap(), idle < kSpinTime ? kPolledSockets / world_size() : 0);
  if (!ready) return false;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (!sockets_.ready(static_cast<std::size_t>(peer)) || is_receiving_from(peer)) continue;
    if (connection(peer).has_front()) connection(peer).read_ahead();
    next_data(peer);
  }
  return true;
}

/// Reads frames that arrived together with earlier messages: polling the socket does not report them. False if none.
bool TcpTransport::read_buffered(bool stalled) {
  bool found = false;
  for (int peer = 0; peer < world_size(); ++peer) {
    if (connection(peer).has_buffered_front()) {
      next_data(peer);
      found = true;
    } else if (stalled && !is_receiving_from(peer)) {
      while (const std::optional<tcp::Frame> frame = connection(peer).next_ahead(world_size())) {
        wait_chain_.record(peer, *frame);
        if (frame->kind == tcp::FrameKind::goodbye && frame->reason > GroupState::left)
          detector_.record_goodbye(peer, *frame);  // `left` matters only to who needs the peer after that data
        found = true;
      }
    }
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
    const bool announces = frame->kind == tcp::FrameKind::allocation;
    if (!is_valid(*frame, from.received(), world_size()) || (announces && !take_announcement(peer, *frame)))
      detector_.failure().throw_desync(
          peer,
          fmt::format("rank {} received an invalid or out-of-order frame from rank {}: the "
                      "connection is corrupt, or rank {} runs another version of gradring",
                      rank_, peer, peer),
          op_);
    if (frame->kind == tcp::FrameKind::data) return frame;
    if (frame->kind == tcp::FrameKind::goodbye) detector_.record_goodbye(peer, *frame);
    if (!from.front_was_seen()) wait_chain_.record(peer, *frame);
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

void TcpTransport::note_progress() {
  last_progress_ = Clock::now();
  wait_chain_.reset();
}

void TcpTransport::send_goodbye(GroupState reason, int failed_rank) {
  const tcp::Frame frame{.kind = tcp::FrameKind::goodbye, .reason = reason, .subject = failed_rank};
  for (tcp::Connection& to : connections_) {
    if (!to.writable()) continue;
    to.send(frame);
    // `left` is sent by the destructor, when the memory of unsent slices may be freed.
    if (reason != GroupState::left) to.flush();
  }
}

// An allocation has one barrier: each rank announces the size of its allocation to all others.

std::unique_ptr<Segment> TcpTransport::allocate(std::size_t bytes, Deadline deadline) {
  detector_.failure().adopt_and_throw_if_failed();
  std::shared_ptr<std::byte> memory = zeroed_memory(bytes);
  std::byte* const data = memory.get();
  ++segments_;
  op_ = PendingOp{.operation = "allocate", .number = segments_};
  last_progress_ = op_.since;
  const tcp::Frame frame{.kind = tcp::FrameKind::allocation, .segment = segments_, .elements = bytes};
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank_) connection(peer).send(frame);
  for (;;) {
    flush();
    std::vector<int> missing;
    for (int peer = 0; peer < world_size(); ++peer)
      if (peer != rank_ && !has_announced(peer, bytes)) missing.push_back(peer);
    if (missing.empty() && !has_unsent_messages()) break;
    block(missing.empty() ? awaited() : missing, deadline);
  }
  note_progress();
  return std::make_unique<OwnSegment<std::shared_ptr<std::byte>>>(data, std::move(memory), bytes, segments_);
}

/// False for one that comes out of order.
bool TcpTransport::take_announcement(int peer, const tcp::Frame& frame) {
  Announced& theirs = announced_[static_cast<std::size_t>(peer)];
  if (frame.segment != theirs.count + 1 || theirs.count > segments_) return false;
  theirs.bytes[frame.segment % 2] = frame.elements;
  theirs.count = frame.segment;
  return true;
}

/// Whether a peer has announced the newest segment too.
bool TcpTransport::has_announced(int peer, std::size_t bytes) {
  const Announced& theirs = announced_[static_cast<std::size_t>(peer)];
  const tcp::Frame* data = next_data(peer);
  if (theirs.count < segments_ && data)
    detector_.failure().throw_desync(
        peer,
        fmt::format("ranks are out of sync: rank {} allocates {} bytes, but rank {} is in {} {}; "
                    "make the same calls in the same order on all ranks",
                    rank_, bytes, peer, data->operation.data(), data->collective),
        op_);
  if (theirs.count < segments_) return false;
  const std::uint64_t announced = theirs.bytes[segments_ % 2];
  if (announced != bytes)
    detector_.failure().throw_desync(
        peer,
        fmt::format("ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; "
                    "allocate the same sizes in the same order on all ranks",
                    rank_, bytes, peer, announced),
        op_);
  return true;
}

}  // namespace gradring::comm
