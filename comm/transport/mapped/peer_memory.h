// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace gradring::comm {

/// How ranks that can read each other's memory get at it, and what they know of each other: all that differs between
/// ranks that are threads and ranks that are processes.
///
/// Threads   one thread at a time.
class PeerMemory {
 public:
  /// Memory that stays mapped while somebody holds it.
  using Region = std::shared_ptr<std::byte>;

  virtual ~PeerMemory() = default;
  virtual int rank() const = 0;
  virtual int world_size() const = 0;

  /// The memory of that rank's control block; this rank's own is created there.
  virtual std::byte* control_block(int rank) = 0;
  /// This rank's share of segment `index`: `bytes` zero bytes, aligned to 64. Indices count from 0, one after the
  /// other.
  ///
  /// Errors    DeviceError if there is no memory.
  virtual Region create(std::size_t index, std::size_t bytes) = 0;
  /// The peer's share of segment `index`, which it has created with as many bytes. Null if it has gone meanwhile.
  virtual Region map(int peer, std::size_t index, std::size_t bytes) = 0;

  /// Whether the peer has ended; cheap enough to ask fifty times in a second.
  virtual bool gone(int peer) = 0;
  /// Whether the peer is there but cannot run until somebody lets it.
  virtual bool stopped(int peer) = 0;
  /// What a person calls the peer: "process 4711", "a thread of this process".
  virtual std::string describe(int peer) const = 0;
};

}  // namespace gradring::comm
