// SPDX-License-Identifier: Apache-2.0
#include "comm/transports/mapped/mapped_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/message.h"
#include "comm/transport/sum.h"

// The progress of a step, and the ranks that it waits for.

namespace gradring::comm {
namespace {

std::vector<ControlBlock> blocks_of(PeerMemory& memory) {
  std::vector<ControlBlock> blocks;
  for (int rank = 0; rank < memory.world_size(); ++rank) blocks.push_back(ControlBlock::at(memory.control_block(rank)));
  return blocks;
}

bool overlap(const Slice& a, const Slice& b) {
  return a.offset < b.offset + b.elements && b.offset < a.offset + a.elements;
}

}  // namespace

MappedTransport::MappedTransport(std::unique_ptr<PeerMemory> memory)
    : memory_(std::move(memory)),
      blocks_(blocks_of(*memory_)),
      monitor_(*memory_, blocks_),
      mailboxes_(blocks_, memory_->rank()) {}

MappedTransport::~MappedTransport() { monitor_.leave(); }

void MappedTransport::submit(kernels::Stream& stream, std::function<void()> collective) {
  stream.enqueue(std::move(collective));
}

void MappedTransport::enqueue(const Step& step) {
  monitor_.failure().adopt_and_throw_if_failed();
  check_step(step, *this);
  step_ = step;
  segment_ = static_cast<const MappedSegment*>(step.range.segment);
  op_ = PendingOp{.operation = step.operation, .number = step.collective, .step = step.index};
  pending_.clear();
  reductions_.clear();
  for (const Move& move : step.moves)
    (move.kind == Move::Kind::reduce_exposed ? reductions_ : pending_).push_back(move);
  // Publish first, so that peers can start before this rank receives.
  std::erase_if(pending_, [this](const Move& move) { return is_outgoing(move) && try_move(move); });
}

Progress MappedTransport::poll() {
  monitor_.failure().adopt_and_throw_if_failed();
  std::erase_if(pending_, [this](const Move& move) { return try_move(move); });
  if (can_reduce_exposed()) reduce_exposed();
  drop_read();
  return progress();
}

bool MappedTransport::try_move(const Move& move) {
  if (!can_move(move)) return false;
  is_outgoing(move) ? send(move) : receive(move);
  monitor_.doorbell().notify(move.peer);
  return true;
}

void MappedTransport::send(const Move& move) {
  const std::uint64_t message = mailboxes_.send(move.peer, header_of(step_, move));
  unread_.push_back({move.peer, message, segment_, bytes_of(move.slice), move.kind == Move::Kind::expose});
}

/// The message that matches this move.
///
/// Errors    Desync if the oldest message does not.
const MessageHeader& MappedTransport::expect(const Move& move) {
  const MessageHeader& header = mailboxes_.front(move.peer);
  const MessageHeader expected = header_of(step_, move);
  if (header != expected)
    monitor_.failure().throw_desync(move.peer, describe_mismatch(rank(), expected, move.peer, header), op_);
  return header;
}

void MappedTransport::receive(const Move& move) {
  const MessageHeader& header = expect(move);
  if (move.slice.elements > 0) {
    const std::size_t element_bytes = size_of(step_.range.dtype);
    std::byte* to = segment_->data() + bytes_of(move.slice).offset;
    const std::byte* from = segment_->part_of(move.peer) + header.offset * element_bytes;
    if (move.kind == Move::Kind::receive)
      std::memcpy(to, from, move.slice.elements * element_bytes);
    else
      add_into(to, from, move.slice.elements, step_.range.dtype);
  }
  mailboxes_.take(move.peer);
}

void MappedTransport::reduce_exposed() {
  const std::size_t element_bytes = size_of(step_.range.dtype);
  std::vector<std::byte*> parts;
  for (const Move& move : reductions_)
    parts.push_back(segment_->part_of(move.peer) + expect(move).offset * element_bytes);
  const Slice& mine = reductions_.front().slice;
  sum_into_all(segment_->data() + bytes_of(mine).offset, parts, mine.elements, step_.range.dtype);
  for (const Move& move : reductions_) {
    mailboxes_.take(move.peer);
    monitor_.doorbell().notify(move.peer);
  }
  reductions_.clear();
}

Slice MappedTransport::bytes_of(const Slice& slice) const {
  const std::size_t element_bytes = size_of(step_.range.dtype);
  return {(step_.range.slice.offset + slice.offset) * element_bytes, slice.elements * element_bytes};
}

Progress MappedTransport::progress() const {
  const auto exposed = [](const Unread& slice) { return slice.exposed; };
  if (!pending_.empty() || !reductions_.empty() || std::ranges::any_of(unread_, exposed)) return Progress::pending;
  return unread_.empty() ? Progress::done : Progress::received;
}

void MappedTransport::wait(Deadline deadline) {
  monitor_.failure().adopt_and_throw_if_failed();
  const auto ready = [this] {
    if (pending_.empty() && reductions_.empty())
      return std::ranges::any_of(unread_, [this](const Unread& sent) { return was_read(sent); });
    return can_reduce_exposed() || std::ranges::any_of(pending_, [this](const Move& move) { return can_move(move); });
  };
  monitor_.block_until(
      ready, [this] { return awaited(); }, deadline, op_);
}

std::vector<int> MappedTransport::awaited() const {
  std::vector<int> peers;
  for (const std::vector<Move>* moves : {&pending_, &reductions_})
    for (const Move& move : *moves)
      if (const std::optional<int> peer = blocked_by(move)) peers.push_back(*peer);
  if (!peers.empty()) return peers;
  for (const Unread& sent : unread_)
    if (!was_read(sent)) peers.push_back(sent.peer);
  return peers;
}

/// The rank that this move waits for; empty if it can run now.
std::optional<int> MappedTransport::blocked_by(const Move& move) const {
  const bool peer_is_ready = is_outgoing(move) ? mailboxes_.can_send(move.peer) : mailboxes_.has_message(move.peer);
  if (!peer_is_ready) return move.peer;
  return move.kind == Move::Kind::send ? std::nullopt : reader_of(move.slice);
}

/// A rank that may still read the slice.
std::optional<int> MappedTransport::reader_of(const Slice& slice) const {
  const Slice target = bytes_of(slice);
  const auto reader = std::ranges::find_if(unread_, [&](const Unread& sent) {
    return sent.segment == segment_ && overlap(sent.bytes, target) && !was_read(sent);
  });
  return reader == unread_.end() ? std::nullopt : std::optional(reader->peer);
}

bool MappedTransport::can_reduce_exposed() const {
  return !reductions_.empty() && std::ranges::all_of(reductions_, [this](const Move& move) { return can_move(move); });
}

bool MappedTransport::was_read(const Unread& sent) const { return mailboxes_.read_by(sent.peer) >= sent.message; }

void MappedTransport::drop_read() {
  std::erase_if(unread_, [this](const Unread& sent) { return was_read(sent); });
}

// An allocation has two barriers: after all ranks have created their part, so that it can be mapped; and after all have
// mapped all parts, so that no part is freed and no counter changes too early.

std::unique_ptr<Segment> MappedTransport::allocate(std::size_t bytes, Deadline deadline) {
  monitor_.failure().adopt_and_throw_if_failed();
  const PendingOp op{.operation = "allocate", .number = segments_ + 1};
  ControlBlock::Status& mine = blocks_[static_cast<std::size_t>(rank())].status();
  std::vector<PeerMemory::Region> parts(blocks_.size());
  auto [memory, offset] = memory_->create(bytes);
  parts[static_cast<std::size_t>(rank())] = std::move(memory);
  ++segments_;
  mine.created_bytes.store(bytes);
  mine.created_offset.store(offset);
  mine.created.store(segments_);
  wait_for_all(&ControlBlock::Status::created, deadline, op);
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == rank()) continue;
    const ControlBlock::Status& status = blocks_[static_cast<std::size_t>(peer)].status();
    const std::size_t theirs = status.created_bytes.load();
    if (theirs != bytes)
      monitor_.failure().throw_desync(
          peer,
          fmt::format("ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; "
                      "allocate the same sizes in the same order on all ranks",
                      rank(), bytes, peer, theirs),
          op);
    parts[static_cast<std::size_t>(peer)] = memory_->map(peer, status.created_offset.load(), bytes);
  }
  mine.mapped.store(segments_);
  wait_for_all(&ControlBlock::Status::mapped, deadline, op);
  return std::make_unique<MappedSegment>(std::move(parts), rank(), bytes, segments_);
}

void MappedTransport::wait_for_all(std::atomic<std::uint64_t> ControlBlock::Status::*counter, Deadline deadline,
                                   const PendingOp& op) {
  for (int peer = 0; peer < world_size(); ++peer)
    if (peer != rank()) monitor_.doorbell().notify(peer);
  const auto missing = [&] {
    std::vector<int> peers;
    for (int peer = 0; peer < world_size(); ++peer)
      if ((blocks_[static_cast<std::size_t>(peer)].status().*counter).load() < segments_) peers.push_back(peer);
    return peers;
  };
  monitor_.block_until([&] { return missing().empty(); }, missing, deadline, op);
}

}  // namespace gradring::comm
