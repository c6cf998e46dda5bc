// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Every rank keeps all gradients: the ranks' sums come to be where backward writes, in the last pass of a window.
///
/// Threads   that of the trainer. What is given must outlive it.
class ReplicatedGradients final : public GradientPath {
 public:
  ReplicatedGradients(const nn::Gradients& gradients, DistributedDataParallel& next);

  /// Errors    InvalidArgument for a pass that would have to be added to others.
  const nn::Gradients& begin(Pass pass) override;
  void enqueue_end() override;

  void before_forward() override {}
  void before_backward() override;
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int>) override {}
  void gradient_ready(int parameter) override;

 private:
  nn::Gradients gradients_;
  DistributedDataParallel& next_;
  bool last_pass_ = true;
};

}  // namespace gradring::train
