// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/simt/engine/grid.h"
#include "kernels/simt/executor_options.h"

namespace gradring::simt {

namespace detail {
class Pool;
class Worker;
}  // namespace detail

/// Runs grids on the CPU. Belongs to one stream: it has its own OS threads, stacks and shared memory, so that streams, and
/// ranks that are threads, never wait for each other to launch. Cheap to make: threads and stacks come with the first
/// launch that needs them.
///
/// Threads   one launch at a time; different executors are independent.
class Executor {
 public:
  explicit Executor(const ExecutorOptions& options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs all blocks of `grid`; returns when they are done. A grid without blocks is nothing to do.
  ///
  /// Errors    simt::Error if no GPU would take the launch, or a kernel breaks a rule; its other blocks may not have run.
  void run(const Grid& grid);

  /// OS threads that share out the blocks of a grid, the caller included. Under TSan at least two: it sees a race between
  /// blocks only if they run on different threads.
  unsigned workers() const { return options_.workers; }

 private:
  void run_on_all(const Grid& grid, unsigned workers);
  detail::Worker& worker(unsigned index);

  ExecutorOptions options_;
  std::vector<std::unique_ptr<detail::Worker>> workers_;
  std::unique_ptr<detail::Pool> pool_;
};

}  // namespace gradring::simt
