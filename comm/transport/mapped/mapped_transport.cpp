// SPDX-License-Identifier: Apache-2.0
#include "comm/transport/mapped/mapped_transport.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/transport/check_step.h"
#include "comm/transport/message.h"
#include "comm/transport/sum.h"

namespace gradring::comm {
namespace {

std::vector<ControlBlock> blocks_of(PeerMemory& memory) {
  std::vector<ControlBlock> blocks;
  for (int rank = 0; rank < memory.world_size(); ++rank) blocks.push_back(ControlBlock::at(memory.control_block(rank)));
  return blocks;
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
  monitor_.throw_if_failed();
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
  monitor_.throw_if_failed();
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
  const std::uint64_t message = mailboxes_.send(move.peer, header_of(move));
  unread_.push_back({move.peer, message, segment_, bytes_of(move.slice), move.kind == Move::Kind::expose});
}

/// The message that matches this move.
///
/// Errors    Desync if the oldest message does not.
const MessageHeader& MappedTransport::expect(const Move& move) {
  const MessageHeader& header = mailboxes_.front(move.peer);
  const MessageHeader expected = header_of(move);
  if (!matches(header, expected))
    monitor_.throw_desync(move.peer, describe_mismatch(rank(), expected, move.peer, header), op_);
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

MessageHeader MappedTransport::header_of(const Move& move) const {
  return comm::header_of(step_, move, segment_ ? segment_->number() : 0);
}

}  // namespace gradring::comm
