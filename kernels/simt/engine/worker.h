// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/simt/engine/block.h"
#include "kernels/simt/engine/grid.h"
#include "kernels/simt/engine/shared_memory.h"
#include "kernels/simt/executor_options.h"

namespace gradring::simt::detail {

/// What one OS thread needs to run blocks of a grid: shared memory, and stacks once a kernel wants them.
class Worker {
 public:
  explicit Worker(const ExecutorOptions& options) : options_(options) {}

  /// Before the first run of a launch: sets gridDim, blockDim and the dynamic shared memory on the calling OS thread.
  void begin(const Grid& grid);
  /// Runs blocks [begin, end).
  void run(const Grid& grid, std::size_t begin, std::size_t end);
  /// After the last run of a launch.
  void end();

 private:
  void run_threads(const Grid& grid, std::size_t begin, std::size_t end);

  ExecutorOptions options_;
  DynamicShared shared_;
  std::unique_ptr<Block> block_;
};

}  // namespace gradring::simt::detail
