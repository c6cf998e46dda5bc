// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "train/parallel/bucket_memory.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// How riders (the loss) reach all ranks. Where every rank gets the whole sum of the last bucket as it is, they ride in it;
/// else they travel by themselves, and are summed in the order in which their bucket would have been: the bits are the same.
///
/// Threads   that of the trainer. All that is given must outlive it.
class Riders {
 public:
  /// Blocks until all ranks have come. `alone`: the bucket does not take them along.
  Riders(comm::ProcessGroup& group, const BucketMemory& gradients, bool alone);

  /// Where this rank leaves its own, and finds the sums; layout.riders().elements of them.
  float* data() const { return data_; }
  /// Sums them, unless they ride in the bucket.
  void enqueue_sum(kernels::Stream& stream, comm::AllReduceAlgorithm algorithm);

 private:
  comm::ProcessGroup& group_;
  std::unique_ptr<comm::Segment> segment_;  // a place for each shard of the bucket; null where they ride
  float* data_ = nullptr;
};

}  // namespace gradring::train
