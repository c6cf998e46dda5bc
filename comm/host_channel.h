// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/channel.h"
#include "comm/collectives/schedule.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

/// Collectives on host values (flags, counts, texts) over a transport of host memory: a group's control channel. They
/// run in the caller and block it, through a small staging buffer. Every rank makes the same calls in the same order.
///
/// Threads   one thread at a time.
/// Errors    CommError (PeerLost, Timeout, Desync); no call waits longer than the timeout.
class HostChannel {
 public:
  /// Blocks until all ranks have joined.
  HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout);

  /// Every rank's bytes in rank order; the length is equal on all ranks. So is `operation`, a literal that tells apart
  /// what the bytes are for.
  std::vector<std::byte> all_gather(std::span<const std::byte> mine, std::string_view operation = "all_gather");
  /// The root's text, on every rank.
  ///
  /// Errors    InvalidArgument if the root is outside the world.
  std::string broadcast_text(const std::string& text, int root);
  /// Returns when every rank has called it.
  void barrier();

  Channel& channel() { return channel_; }

 private:
  void broadcast(std::span<std::byte> bytes, int root);
  void run(const Schedule& schedule, std::size_t bytes, int root = kNoRoot);

  Channel channel_;
  std::chrono::nanoseconds timeout_;
  std::unique_ptr<Segment> staging_;
  std::uint64_t collectives_ = 0;
};

}  // namespace gradring::comm
