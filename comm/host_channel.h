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

/// Runs collectives in the caller, on small memory of its own: what ranks need to agree on flags, counts and texts.
/// Longer values go through that memory piece by piece.
///
/// Threads   one thread at a time.
class HostChannel {
 public:
  /// Blocks until all ranks have come.
  HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout);
  ~HostChannel();

  /// Every rank's bytes, in the order of the ranks; all ranks give as many.
  std::vector<std::byte> all_gather(std::span<const std::byte> mine);
  /// The root's bytes replace all others'; all ranks give as many.
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
