// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/parallel/bucket_memory.h"
#include "train/parallel/collected_sums.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Backward writes gradients into a few places in which buckets take turns. Each pass that this hears of is summed over the ranks
/// at once (behind GradientAccumulation, a window's last), and of the sums each rank keeps its shards.
///
/// Threads   that of the trainer. What is given must outlive it.
class RotatingGradients final : public GradientPath {
 public:
  struct Parts {
    kernels::Stream& stream;
    const BucketMemory& gradients;
    CollectedSums& sums;
    float* riders;  ///< of a pass
    DistributedDataParallel& next;
  };
  explicit RotatingGradients(const Parts& parts);

  const nn::Gradients& begin(Pass pass) override;
  void enqueue_end() override;

  void before_forward() override {}
  void before_backward() override;
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int> parameters) override;
  void gradient_ready(int parameter) override { parts_.next.gradient_ready(parameter); }

 private:
  void enqueue_open(int bucket);

  Parts parts_;
  nn::Gradients places_;
  int open_ = 0;  // buckets of this pass that have had a place
};

}  // namespace gradring::train
