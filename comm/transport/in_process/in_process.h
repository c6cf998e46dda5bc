// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport/mapped/peer_memory.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// Where the threads of one process that are ranks leave their memory for each other.
///
/// Threads   any member function may be called from any thread.
class InProcessMeeting {
 public:
  explicit InProcessMeeting(int world_size);

  int world_size() const { return static_cast<int>(blocks_.size()); }
  std::byte* control_block(int rank) const { return blocks_[static_cast<std::size_t>(rank)].get(); }
  /// Errors    InvalidArgument if the rank is outside the world or has come before.
  void arrive(int rank);
  void leave_share(int rank, std::size_t index, const PeerMemory::Region& share);
  /// Null if the rank has freed it.
  PeerMemory::Region share(int rank, std::size_t index) const;

 private:
  std::vector<PeerMemory::Region> blocks_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<bool> arrived_;
  std::vector<std::vector<std::weak_ptr<std::byte>>> shares_;  // by rank, then by index
};

/// The transport of one rank that is a thread.
///
/// Errors    InvalidArgument if the rank is outside the meeting's world or has come before.
std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessMeeting> meeting, int rank);

}  // namespace gradring::comm
