// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// Work that can be enqueued again and again as one: Device::record makes it. It holds addresses, not memory: what the work
/// uses must outlive it.
///
/// Threads   one at a time.
class Recording {
 public:
  virtual ~Recording() = default;
  /// Runs the whole once more, in the order of `stream`, which is the one that was recorded.
  ///
  /// Errors    DeviceError if it cannot be launched; on a CPU, what the work throws.
  virtual void enqueue(Stream& stream) = 0;
};

}  // namespace gradring::kernels
