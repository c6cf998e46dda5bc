// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace gradring::simt {

class Executor;

/// What a CPU stream offers to kernel launches: the place in line, and the executor that runs the grid. A host stream's
/// native_handle() points to one.
class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  /// Runs `launch` in stream order with the stream's executor.
  virtual void enqueue_launch(std::function<void(Executor&)> launch) = 0;
  /// How many OS threads share out the blocks of a grid; what grid_for sizes launches by.
  virtual unsigned workers() const = 0;
};

}  // namespace gradring::simt
