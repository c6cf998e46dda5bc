// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "comm/transport/mapped/peer_memory.h"
#include "comm/transport/segment.h"

namespace gradring::comm {

/// A segment of which every rank's part is mapped into this process.
class MappedSegment final : public Segment {
 public:
  /// `parts` holds one region per rank; `number` is the segment's sequence number in its group, from 1.
  MappedSegment(std::vector<PeerMemory::Region> parts, int rank, std::size_t bytes, std::size_t number)
      : Segment(parts[static_cast<std::size_t>(rank)].get(), bytes), parts_(std::move(parts)), number_(number) {}

  std::byte* part_of(int rank) const { return parts_[static_cast<std::size_t>(rank)].get(); }
  std::size_t number() const { return number_; }

 private:
  std::vector<PeerMemory::Region> parts_;
  std::size_t number_;
};

}  // namespace gradring::comm
