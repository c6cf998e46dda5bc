// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/stream.h"

namespace gradring::train {

/// Sums a bucket of gradients over the ranks.
class BucketSum {
 public:
  virtual ~BucketSum() = default;
  /// Enqueues it on `stream`. Buckets come in order, on all ranks alike.
  virtual void enqueue_sum(int bucket, kernels::Stream& stream) = 0;
};

}  // namespace gradring::train
