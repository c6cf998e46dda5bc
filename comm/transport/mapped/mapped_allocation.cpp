// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "comm/transport/mapped/mapped_transport.h"

namespace gradring::comm {

// An allocation has two barriers: after all ranks have created their part, so that it can be mapped; and after all have
// mapped all parts, so that no part is freed and no counter changes too early.

std::unique_ptr<Segment> MappedTransport::allocate(std::size_t bytes, Deadline deadline) {
  monitor_.throw_if_failed();
  const PendingOp op{.operation = "allocate", .number = segments_ + 1};
  ControlBlock::Status& mine = blocks_[static_cast<std::size_t>(rank())].status();
  std::vector<PeerMemory::Region> parts(blocks_.size());
  parts[static_cast<std::size_t>(rank())] = memory_->create(segments_, bytes);
  ++segments_;
  mine.created_bytes.store(bytes);
  mine.created.store(segments_);
  wait_for_all(&ControlBlock::Status::created, deadline, op);
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == rank()) continue;
    const std::size_t theirs = blocks_[static_cast<std::size_t>(peer)].status().created_bytes.load();
    if (theirs != bytes)
      monitor_.throw_desync(
          peer,
          fmt::format("ranks are out of sync: rank {} allocates {} bytes, but rank {} allocates {}; allocate the same "
                      "sizes in the same order on all ranks",
                      rank(), bytes, peer, theirs),
          op);
    parts[static_cast<std::size_t>(peer)] = memory_->map(peer, segments_ - 1, bytes);
  }
  mine.mapped.store(segments_);
  wait_for_all(&ControlBlock::Status::mapped, deadline, op);
  return std::make_unique<MappedSegment>(std::move(parts), rank(), bytes, segments_);
}

void MappedTransport::wait_for_all(std::atomic<std::uint64_t> ControlBlock::Status::*counter, Deadline deadline,
                                   const PendingOp& op) {
  monitor_.doorbell().notify_all();
  const auto missing = [&] {
    std::vector<int> peers;
    for (int peer = 0; peer < world_size(); ++peer)
      if ((blocks_[static_cast<std::size_t>(peer)].status().*counter).load() < segments_) peers.push_back(peer);
    return peers;
  };
  monitor_.block_until([&] { return missing().empty(); }, missing, deadline, op);
}

}  // namespace gradring::comm
