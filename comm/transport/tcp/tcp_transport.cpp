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

/// What is added passes through so many bytes of scratch: they stay in a core's second-level cache beside the target.
constexpr std::size_t kScratchBytes = 128 * 1024;
/// What is received in place comes in pieces of so many bytes at most, so that this rank's sends go on in between.
constexpr std::size_t kPieceBytes = 512 * 1024;

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
      roll_(rank, descriptions_of(peers), [this](Membership reason, int culprit) { say_farewell(reason, culprit); }),
      announced_(peers.size()),
      scratch_(std::make_unique<std::byte[]>(kScratchBytes)) {}

TcpTransport::~TcpTransport() {
  if (!roll_.broken()) say_farewell(Membership::left, -1);  // else the reason of the failure was told already
  for (tcp::Connection& connection : connections_) connection.close();
}

void TcpTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  stream.enqueue(std::move(collective));
}

void TcpTransport::enqueue(const Step& step) {
  roll_.refuse_if_broken();
  check_step(step, *this);
  step_ = step;
  segment_ = static_cast<const TcpSegment*>(step.range.segment);
  errand_ = Errand{.operation = step.operation, .number = step.collective, .step = step.index};
  moved_ = errand_.since;
  arrivals_.clear();
  for (const Move& move : step.moves) {
    if (move.kind == Move::Kind::send) {
      connection(move.peer).send(tcp::data_frame(header_of(move)), {target(move), bytes_of(move)});
      connection(move.peer).flush();
    } else {
      arrivals_.push_back({.move = move});
    }
  }
}

Progress TcpTransport::poll() {
  roll_.refuse_if_broken();
  for (bool moved = true; std::exchange(moved, false);) {
    flush();
    std::vector<int> seen;  // messages of one peer come one after the other
    for (Arrival& arrival : arrivals_) {
      if (std::ranges::find(seen, arrival.move.peer) != seen.end()) continue;
      seen.push_back(arrival.move.peer);
      moved |= advance(arrival);
    }
    std::erase_if(arrivals_, [this](const Arrival& arrival) { return is_complete(arrival); });
    if (moved) note_progress();
  }
  if (!arrivals_.empty()) return Progress::pending;
  return owes_somebody() ? Progress::received : Progress::done;
}

/// True if something came.
bool TcpTransport::advance(Arrival& arrival) {
  const bool begun = arrival.begun;
  if (!begun && !begin(arrival)) return false;
  const std::size_t came = arrival.move.kind == Move::Kind::receive ? place(arrival) : add(arrival);
  tcp::Connection& from = connection(arrival.move.peer);
  if (is_complete(arrival))
    from.take_front();
  else if (came == 0 && from.ended())
    roll_.lose(arrival.move.peer, from.error_number());
  return came > 0 || !begun;
}

/// Whether the message's head is there and its target may be written.
bool TcpTransport::begin(Arrival& arrival) {
  const Move& move = arrival.move;
  const tcp::Frame* frame = next_data(move.peer);
  if (!frame) {
    if (announced_[static_cast<std::size_t>(move.peer)].size() > segments_)
      roll_.report_desync(move.peer,
                          fmt::format("rank {} is in {} {}, step {}, but rank {} allocates memory: all ranks must make "
                                      "the same calls, in the same order",
                                      rank_, step_.operation, step_.collective, step_.index, move.peer),
                          errand_);
    return false;
  }
  const MessageHeader sent = tcp::message_of(*frame);
  const MessageHeader expected = header_of(move);
  if (!belong_together(sent, expected))
    roll_.report_desync(move.peer, describe_mismatch(rank_, expected, move.peer, sent), errand_);
  const auto holder = std::ranges::find_if(
      connections_, [&](const tcp::Connection& to) { return to.holds(target(move), bytes_of(move)); });
  arrival.held_up_by = holder == connections_.end() ? -1 : static_cast<int>(holder - connections_.begin());
  arrival.begun = arrival.held_up_by < 0;
  return arrival.begun;
}

std::size_t TcpTransport::place(Arrival& arrival) {
  const std::size_t left = bytes_of(arrival.move) - arrival.placed;
  if (left == 0) return 0;
  const std::size_t came =
      connection(arrival.move.peer).receive(target(arrival.move) + arrival.placed, std::min(left, kPieceBytes));
  arrival.placed += came;
  return came;
}

std::size_t TcpTransport::add(Arrival& arrival) {
  const std::size_t element_bytes = size_of(step_.range.dtype);
  const std::size_t left = bytes_of(arrival.move) - arrival.placed;  // the fraction is not placed yet
  if (left == 0) return 0;
  std::memcpy(scratch_.get(), arrival.fraction.data(), arrival.fraction_bytes);
  const std::size_t came =
      connection(arrival.move.peer)
          .receive(scratch_.get() + arrival.fraction_bytes, std::min(left, kScratchBytes) - arrival.fraction_bytes);
  const std::size_t there = arrival.fraction_bytes + came;
  const std::size_t whole = there / element_bytes;
  add_into(target(arrival.move) + arrival.placed, scratch_.get(), whole, step_.range.dtype);
  arrival.placed += whole * element_bytes;
  arrival.fraction_bytes = there - whole * element_bytes;
  std::memcpy(arrival.fraction.data(), scratch_.get() + whole * element_bytes, arrival.fraction_bytes);
  return came;
}

bool TcpTransport::is_complete(const Arrival& arrival) const {
  return arrival.begun && arrival.placed == bytes_of(arrival.move);
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
