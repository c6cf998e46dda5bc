// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gradring::comm {

/// Access to peers' memory and to their liveness: all that differs between ranks that are threads and ranks that are
/// processes.
///
/// Threads   one thread at a time.
class PeerMemory {
 public:
  /// Memory that stays mapped while it is referenced.
  using Region = std::shared_ptr<std::byte>;

  virtual ~PeerMemory() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// The memory of that rank's control block; this rank's own block is created there.
  virtual std::byte* control_block(int rank) = 0;
  /// This rank's part of segment `index`: `bytes` zero bytes, aligned to 64. Indices count up from 0.
  ///
  /// Errors    DeviceError if there is no memory.
  virtual Region create(std::size_t index, std::size_t bytes) = 0;
  /// The peer's part of segment `index`, which has as many bytes. Null if the peer is gone.
  virtual Region map(int peer, std::size_t index, std::size_t bytes) = 0;

  /// Whether the peer has ended; cheap enough for fifty calls per second.
  virtual bool gone(int peer) = 0;
  /// Whether the peer is stopped by a signal.
  virtual bool stopped(int peer) = 0;
  /// Describes the peer in messages: "process 4711", "a thread of this process".
  virtual std::string describe(int peer) const = 0;
};

}  // namespace gradring::comm
