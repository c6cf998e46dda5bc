// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "comm/collectives/collective.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// Collectives on host values (flags, counts, texts). They run in the caller, through a small staging buffer.
///
/// Threads   one thread at a time.
class HostChannel {
 public:
  /// Blocks until all ranks have joined.
  HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout);
  ~HostChannel();

  /// Every rank's bytes in rank order; the length is equal on all ranks.
  std::vector<std::byte> all_gather(std::span<const std::byte> mine);
  /// Copies the root's bytes to all ranks; the length is equal on all ranks.
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier();

 private:
  void run(const Schedule& schedule, std::size_t bytes, int root);

  std::unique_ptr<Transport> transport_;
  std::chrono::nanoseconds timeout_;
  std::unique_ptr<Segment> staging_;
  std::uint64_t collectives_ = 0;
};

}  // namespace gradring::comm
