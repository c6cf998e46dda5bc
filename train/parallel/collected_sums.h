// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/event.h"
#include "train/parallel/bucket_sum.h"

namespace gradring::train {

/// Sums buckets over the ranks and collects of each what this rank keeps: then the bucket's place is free for another.
class CollectedSums : public BucketSum {
 public:
  /// The passes of a window come one after the other.
  virtual void begin(bool first_pass) = 0;
  /// Reached when the bucket's sum of the newest pass was collected.
  virtual const kernels::Event& collected(int bucket) const = 0;
};

}  // namespace gradring::train
