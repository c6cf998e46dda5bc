// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/tensor_map.h"

namespace gradring::simulated_gpu {

class Block;
class Warp;
struct Operation;

/// The copies (cp.async) of a warp's threads that are under way, in groups of each thread. A copy lands as late as it
/// can: when its thread waits for its group.
class ThreadCopies {
 public:
  struct Copy {
    std::uint64_t from = 0;  ///< an address of the host
    std::uint32_t to = 0;
    std::uint8_t lane = 0;
    std::uint8_t bytes = 0;   ///< in shared memory
    std::uint8_t filled = 0;  ///< of these, from global memory; the others are 0
  };
  /// `copies`: one for each lane that executes the operation.
  void start(const Operation& operation, Warp& warp, std::span<const Copy> copies);
  void commit(Mask lanes) {
    for_each_lane(lanes, [&](unsigned lane) { ++committed_[lane]; });
  }
  /// Lets land all but the newest `pending` groups; with `all`, also what is not in a group yet.
  void wait(Warp& warp, Mask lanes, std::uint64_t pending, bool all);
  /// cp.async.mbarrier.arrive: the thread arrives when what it has started until now has landed, which is when a thread
  /// waits for the mbarrier.
  void arrive_when_landed(unsigned lane, std::uint32_t mbarrier) {
    arrivals_.push_back({.mbarrier = mbarrier, .lane = lane, .before = next_});
  }
  void land_at(Warp& warp, std::uint32_t mbarrier) {
    if (!arrivals_.empty()) [[unlikely]]
      land_arrivals(warp, mbarrier);
  }
  void clear();

 private:
  struct Arrival {
    std::uint32_t mbarrier = 0;
    unsigned lane = 0;
    std::uint64_t before = 0;  ///< copies with a lower number
  };
  void land_arrivals(Warp& warp, std::uint32_t mbarrier);

  struct Pending {
    Copy copy;
    std::uint64_t number = 0;
    std::uint32_t group = 0;  ///< of the thread
    std::uint32_t start = 0;  ///< an index of starts_
  };
  struct Start {
    const Operation* operation = nullptr;
    AccessClocks::Knowledge knowledge;
  };
  void land(Warp& warp, const Pending& pending);

  std::array<std::uint32_t, kWarpSize> committed_{};  ///< groups of each thread
  std::vector<Pending> pending_;
  std::vector<Start> starts_;
  std::vector<Arrival> arrivals_;
  std::uint64_t next_ = 0;  ///< number of a copy
};

/// The bulk copies to a block's shared memory (cp.async.bulk, cp.async.bulk.tensor) that are under way. A copy lands
/// as late as it can: when a thread waits for its mbarrier.
class TensorCopies {
 public:
  explicit TensorCopies(Block& block) : block_(block) {}

  struct Request {
    TensorMap map;
    std::vector<std::int32_t> coordinates;
    std::uint32_t shared_address = 0;
    std::uint32_t mbarrier = 0;
    // Of a copy without tensor:
    std::uint64_t global_address = 0;
    std::uint32_t plain_bytes = 0;

    std::uint32_t bytes() const { return coordinates.empty() ? plain_bytes : map.box_bytes(); }
    /// Errors    Fault, as of box_chunks.
    void find_chunks(std::vector<BoxChunk>& chunks) const;
  };
  /// `warp` may be one of another block of the cluster.
  void start(const Operation& operation, Warp& warp, unsigned lane, Request request);
  /// Lets land what completes at this mbarrier.
  void land_at(std::uint32_t mbarrier);
  /// Errors    Fault if a copy is under way at the end of the block.
  void end_block();
  void clear() { pending_.clear(); }

 private:
  struct Copy {
    Request request;
    const Operation* operation = nullptr;
    Warp* warp = nullptr;
    unsigned lane = 0;
    AccessClocks::Knowledge knowledge;
  };
  void land(const Copy& copy);
  void land_chunk(const Copy& copy, const BoxChunk& chunk, Stamp stamp);

  Block& block_;
  std::vector<Copy> pending_;
  std::vector<BoxChunk> chunks_;
};

}  // namespace gradring::simulated_gpu
