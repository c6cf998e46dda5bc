// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
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
  /// One rank's part of a segment, and where its peers find it.
  struct Part {
    Region memory;
    std::uint64_t offset = 0;
  };
  /// This rank's part of the next segment: `bytes` zero bytes, aligned to 64. To be called when every rank has mapped
  /// the one before.
  ///
  /// Errors    DeviceError if there is no memory.
  virtual Part create(std::size_t bytes) = 0;
  /// The part that the peer created last, at `offset`, with as many bytes. Null if the peer is gone.
  virtual Region map(int peer, std::uint64_t offset, std::size_t bytes) = 0;

  /// Whether the peer has ended; cheap enough for fifty calls per second.
  virtual bool gone(int peer) = 0;
  /// Whether the peer is stopped by a signal.
  virtual bool stopped(int peer) = 0;
  /// Describes the peer in messages: "process 4711", "a thread of this process".
  virtual std::string describe(int peer) const = 0;
};

}  // namespace gradring::comm
