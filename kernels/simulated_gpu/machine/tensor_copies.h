// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/simulated_gpu/memory/access_clocks.h"
#include "kernels/simulated_gpu/units/tensor_copy.h"

namespace gradring::simulated_gpu {

class Block;
class Warp;
struct Operation;

/// The copies of tensors (cp.async.bulk.tensor) of a block that are under way. A copy lands as late as it can: when a
/// thread waits for its mbarrier.
class TensorCopies {
 public:
  explicit TensorCopies(Block& block) : block_(block) {}

  struct Request {
    TensorMap map;
    std::vector<std::int32_t> coordinates;
    std::uint32_t shared_address = 0;
    std::uint32_t mbarrier = 0;
  };
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
