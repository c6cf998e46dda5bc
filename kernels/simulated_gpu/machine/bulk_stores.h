// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/simulated_gpu/machine/lanes.h"
#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/tensor_map.h"

namespace gradring::simulated_gpu {

class Warp;
struct Operation;

/// What an atomic has done with an element of memory.
struct UpdatedElement {
  std::uint64_t old = 0;  ///< what was there before
  bool changes = false;
};

/// The bulk copies (cp.async.bulk, cp.reduce.async.bulk) from shared to global memory of a warp's threads that are
/// under way, in bulk groups of each thread. A copy reads shared memory as late as it can, when its thread waits for
/// its group with .read, and writes global memory when it waits without it, or at the end of the block.
class BulkStores {
 public:
  struct Request {
    std::vector<BoxChunk> chunks;
    /// Null: a copy. Else what happens to each element: a function of its address and the operand.
    UpdatedElement (*update)(std::uint64_t address, std::uint64_t operand) = nullptr;
    unsigned element_bytes = 0;
  };
  void start(const Operation& operation, Warp& warp, unsigned lane, Request request);
  void commit(Mask lanes) {
    is_used_ = true;
    for_each_lane(lanes, [&](unsigned lane) { ++committed_[lane]; });
  }
  /// For all but the newest `pending` groups. `reads_only`: shared memory may be used again.
  void wait(Warp& warp, Mask lanes, std::uint64_t pending, bool reads_only);
  void end_block(Warp& warp);
  void clear();

 private:
  struct Pending {
    Request request;
    const Operation* operation = nullptr;
    unsigned lane = 0;
    std::uint32_t group = 0;  ///< of the thread
    AccessClocks::Knowledge knowledge;
    bool is_read = false;
    std::vector<std::byte> data;  ///< what was read
  };
  void read(Warp& warp, Pending& pending);
  void write(Warp& warp, const Pending& pending);

  std::array<std::uint32_t, kWarpSize> committed_{};
  std::vector<Pending> pending_;
  bool is_used_ = false;           ///< since clear()
  AccessClocks::Released done_{};  ///< what was read
};

}  // namespace gradring::simulated_gpu
