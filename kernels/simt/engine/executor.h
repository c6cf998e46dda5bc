// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "kernels/simt/engine/grid.h"

namespace gradring::simt {

namespace detail {
class Pool;
class Worker;
}  // namespace detail

/// Runs grids on the CPU. Belongs to one stream: it has its own OS threads, stacks and shared memory, so that streams,
/// and ranks that are threads, never wait for each other to launch. Cheap to make: threads and stacks come with the
/// first launch that needs them.
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
  /// Errors    simt::Error if no GPU would take the launch, or a kernel breaks a rule; its other blocks may not have
  ///           run.
  void run(const Grid& grid);

  /// OS threads that share the blocks of a grid, the caller included. Under TSan at least two: it sees a race
  /// between blocks only if they run on different threads.
  unsigned workers() const { return options_.workers; }

 private:
  void run_on_all(const Grid& grid, unsigned workers);
  detail::Worker& worker(unsigned index);

  ExecutorOptions options_;
  std::vector<std::unique_ptr<detail::Worker>> workers_;
  std::unique_ptr<detail::Pool> pool_;
};

/// What a CPU stream offers to kernel launches: its queue, and the executor that runs the grid. A host stream's
/// native_handle() points to one.
class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  /// Runs `launch` in stream order with the stream's executor.
  virtual void enqueue_launch(std::function<void(Executor&)> launch) = 0;
  /// How many OS threads share the blocks of a grid; what grid_for sizes launches by.
  virtual unsigned workers() const = 0;
};

}  // namespace gradring::simt
