// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <utility>

#include "comm/transport/mapped/mapped_transport.h"

namespace gradring::comm {

// Ranks meet twice in an allocation: when all have created their share, so that it can be mapped; and when all have
// mapped all shares, so that none is freed, and no counter moves on, before everybody has seen it.

std::unique_ptr<Segment> MappedTransport::allocate(std::size_t bytes, Deadline deadline) {
  watch_.refuse_if_broken();
  const Errand errand{.operation = "allocate", .number = segments_ + 1};
  ControlBlock::Status& mine = blocks_[static_cast<std::size_t>(rank())].status();
  std::vector<PeerMemory::Region> shares(blocks_.size());
  shares[static_cast<std::size_t>(rank())] = memory_->create(segments_, bytes);
  ++segments_;
  mine.created_bytes.store(bytes);
  mine.created.store(segments_);
  wait_for_all(&ControlBlock::Status::created, deadline, errand);
  for (int peer = 0; peer < world_size(); ++peer) {
    if (peer == rank()) continue;
    const std::size_t theirs = blocks_[static_cast<std::size_t>(peer)].status().created_bytes.load();
    if (theirs != bytes)
      watch_.report_desync(
          peer,
          fmt::format("rank {} allocates {} bytes where rank {} allocates {}: all ranks must allocate the same, "
                      "in the same order",
                      rank(), bytes, peer, theirs),
          errand);
    shares[static_cast<std::size_t>(peer)] = memory_->map(peer, segments_ - 1, bytes);
  }
  mine.mapped.store(segments_);
  wait_for_all(&ControlBlock::Status::mapped, deadline, errand);
  return std::make_unique<MappedSegment>(std::move(shares), rank(), bytes, segments_);
}

void MappedTransport::wait_for_all(std::atomic<std::uint64_t> ControlBlock::Status::*counter, Deadline deadline,
                                   const Errand& errand) {
  watch_.bells().ring_everybody();
  const auto missing = [&] {
    std::vector<int> peers;
    for (int peer = 0; peer < world_size(); ++peer)
      if ((blocks_[static_cast<std::size_t>(peer)].status().*counter).load() < segments_) peers.push_back(peer);
    return peers;
  };
  watch_.block_until([&] { return missing().empty(); }, missing, deadline, errand);
}

}  // namespace gradring::comm
