// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/simt/engine/fiber.h"

namespace gradring::simt::detail {

class Block;

/// The mbarriers of one block: barriers that lie in shared memory, wait for arrivals and for bytes of asynchronous
/// copies, and count phases. They are identified by address; the memory itself is not read.
///
/// Stricter than hardware: bytes must be expected before they land, and a barrier is initialised once a block.
class Mbarriers {
 public:
  static constexpr unsigned kMost = 64;

  /// None is initialised.
  void begin() { count_ = waiting_count_ = 0; }

  // `me` is the running thread.

  void init(const Fiber& me, Block& block, const void* address, unsigned arrivals);
  /// One arrival, which first lets the phase expect so many bytes.
  void arrive(const Fiber& me, Block& block, const void* address, std::int64_t expected_bytes);
  /// So many bytes have come.
  void land(const Fiber& me, Block& block, const void* address, std::int64_t bytes);
  /// Waits for the end of the phase with this parity; returns at once in the phase after it.
  void wait(Fiber& me, Block& block, const void* address, unsigned parity);

  // Of a deadlock:

  unsigned waiting() const { return waiting_count_; }
  const Fiber& one_waiting() const { return *waiting_[0].fiber; }
  /// What the barrier of one_waiting() lacks.
  void say_what_is_missing(char* text, std::size_t bytes) const;

 private:
  struct Mbarrier {
    const void* address = nullptr;
    unsigned arrivals = 0;  // of a phase
    unsigned missing_arrivals = 0;
    std::int64_t missing_bytes = 0;
    unsigned phase = 0;
    char edges[2] = {};  // for TSan; two that take turns, see Warp::barrier_edges
  };
  struct Waiting {
    Fiber* fiber;
    unsigned barrier;
  };

  Mbarrier& find(const Fiber& me, Block& block, const void* address);
  void end_phase_if_complete(Mbarrier& barrier, Block& block);

  std::array<Mbarrier, kMost> barriers_;
  std::array<Waiting, 1024> waiting_;
  unsigned count_ = 0, waiting_count_ = 0;
};

}  // namespace gradring::simt::detail
