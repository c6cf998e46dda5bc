// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "comm/transport/transport.h"
#include "comm/transports/mapped/peer_memory.h"

namespace gradring::comm {

/// Shared state of ranks that are threads of one process: they publish their memory to each other here.
///
/// Threads   safe.
class InProcessRendezvous {
 public:
  explicit InProcessRendezvous(int world_size);

  int world_size() const { return static_cast<int>(blocks_.size()); }
  std::byte* control_block(int rank) const { return blocks_[static_cast<std::size_t>(rank)].get(); }
  /// Errors    InvalidArgument if the rank is outside the world or has joined before.
  void join(int rank);
  /// Publishes the rank's part of its newest segment.
  void publish(int rank, const PeerMemory::Region& part);
  /// What the rank published last. Null if it has freed that.
  PeerMemory::Region part(int rank) const;

 private:
  std::vector<PeerMemory::Region> blocks_;
  mutable std::mutex mutex_;  // guards the rest
  std::vector<bool> joined_;
  std::vector<std::weak_ptr<std::byte>> parts_;  // by rank
};

/// The transport of one rank that is a thread.
///
/// Errors    InvalidArgument if the rank is outside the world or has joined before.
std::unique_ptr<Transport> make_in_process_transport(std::shared_ptr<InProcessRendezvous> rendezvous, int rank);

}  // namespace gradring::comm
