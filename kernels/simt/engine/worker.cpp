// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/engine/worker.h"

#include "kernels/simt/cpu/index.h"
#include "kernels/simt/engine/current.h"

namespace gradring::simt::detail {
namespace {

/// Makes `block` the calling OS thread's block until the end of the scope, also if a kernel fails.
class CurrentBlock {
 public:
  explicit CurrentBlock(Block& block) { set_current_block(&block); }
  ~CurrentBlock() { set_current_block(nullptr); }
};

}  // namespace

void Worker::begin(const Grid& grid) {
  shared_.resize(grid.shared_bytes);
  dynamic_shared = shared_.data();
  dynamic_shared_bytes = grid.shared_bytes;
  gridDim = {grid.blocks.x, grid.blocks.y, grid.blocks.z};
  blockDim = {grid.threads.x, grid.threads.y, grid.threads.z};
}

void Worker::run(const Grid& grid, std::size_t begin, std::size_t end) {
  // A flat kernel takes the way of all others where that finds more: races, order of threads.
  if (grid.run_flat && !kChecked && options_.order == ThreadOrder::forward)
    grid.run_flat(grid.kernel, grid, begin, end);
  else
    run_threads(grid, begin, end);
}

void Worker::run_threads(const Grid& grid, std::size_t begin, std::size_t end) {
  if (!block_) block_ = std::make_unique<Block>(options_);
  const CurrentBlock current(*block_);
  for (std::size_t i = begin; i < end; ++i) {
    const Extent3 block = grid.blocks.at(i);
    blockIdx = {block.x, block.y, block.z};
    if (options_.poison_shared) {
      shared_.poison();
      poison_shared_variables();
    }
    block_->run(grid, i);
  }
}

void Worker::end() {
  if (block_) block_->release_identities();
}

}  // namespace gradring::simt::detail
