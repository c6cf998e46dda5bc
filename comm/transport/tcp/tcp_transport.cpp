// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/tcp/tcp_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/check_step.h"
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
  for (tcp::Peer& peer : peers)
    peer.socket ? connections.emplace_back(std::move(peer.socket)) : connections.emplace_back();
  return connections;
}

std::vector<std::string> descriptions_of(const std::vector<tcp::Peer>& peers) {
  std::vector<std::string> descriptions;
  for (const tcp::Peer& peer : peers) descriptions.push_back(peer.description);
  return descriptions;
}

}  // namespace

TcpTransport::TcpTransport(std::vector<tcp::Peer> peers, int rank)
    : rank_(rank),
      connections_(connections_of(peers)),
      detector_(rank, descriptions_of(peers),
                [this](GroupState reason, int failed_rank) { send_goodbye(reason, failed_rank); }),
      announced_(peers.size()),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)) {}

TcpTransport::~TcpTransport() {
  if (!detector_.failed()) send_goodbye(GroupState::left, -1);  // a failure has sent its goodbye already
  for (tcp::Connection& connection : connections_) connection.close();
}

void TcpTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  stream.enqueue(std::move(collective));
}

void TcpTransport::enqueue(const Step& step) {
  detector_.throw_if_failed();
  check_step(step, *this);
  step_ = step;
  segment_ = static_cast<const TcpSegment*>(step.range.segment);
  op_ = PendingOp{.operation = step.operation, .number = step.collective, .step = step.index};
  last_progress_ = op_.since;
  receives_.clear();
  for (const Move& move : step.moves) {
    if (move.kind == Move::Kind::send) {
      connection(move.peer).send(tcp::data_frame(header_of(move)), {target(move), bytes_of(move)});
      connection(move.peer).flush();
    } else {
      receives_.push_back({.move = move});
    }
  }
}

Progress TcpTransport::poll() {
  detector_.throw_if_failed();
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
    if (announced_[static_cast<std::size_t>(move.peer)].size() > segments_)
      detector_.throw_desync(
          move.peer,
          fmt::format("ranks are out of sync: rank {} is in {} {}, step {}, but rank {} allocates memory; "
                      "make the same calls in the same order on all ranks",
                      rank_, step_.operation, step_.collective, step_.index, move.peer),
          op_);
    return false;
  }
  const MessageHeader sent = tcp::message_of(*frame);
  const MessageHeader expected = header_of(move);
  if (!matches(sent, expected))
    detector_.throw_desync(move.peer, describe_mismatch(rank_, expected, move.peer, sent), op_);
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
  if (!segment_) return nullptr;
  return segment_->data() + (step_.range.slice.offset + move.slice.offset) * size_of(step_.range.dtype);
}

std::size_t TcpTransport::bytes_of(const Move& move) const { return move.slice.elements * size_of(step_.range.dtype); }

MessageHeader TcpTransport::header_of(const Move& move) const {
  return comm::header_of(step_, move, segment_ ? segment_->number() : 0);
}

}  // namespace gradring::comm
