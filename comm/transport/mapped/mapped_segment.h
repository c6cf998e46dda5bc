// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "comm/transport/mapped/peer_memory.h"
#include "comm/transport/segment.h"

namespace gradring::comm {

/// A segment of which every rank's share is mapped into this process.
class MappedSegment final : public Segment {
 public:
  /// `shares` holds one region for each rank; `number` counts the segments of the group, from 1.
  MappedSegment(std::vector<PeerMemory::Region> shares, int rank, std::size_t bytes, std::size_t number)
      : Segment(shares[static_cast<std::size_t>(rank)].get(), bytes), shares_(std::move(shares)), number_(number) {}

  std::byte* share_of(int rank) const { return shares_[static_cast<std::size_t>(rank)].get(); }
  std::size_t number() const { return number_; }

 private:
  std::vector<PeerMemory::Region> shares_;
  std::size_t number_;
};

}  // namespace gradring::comm
