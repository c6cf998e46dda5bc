// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"
#include "nn/parameter/arena.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Every rank keeps the sums of all gradients. The first pass writes them; each later one writes an arena of its own, of
/// which a tensor is added as soon as it is ready, so that the last pass can hand tensor by tensor on to who sums over the
/// ranks. The passes before the last are nobody else's business: PyTorch's no_sync.
///
/// Memory    one more arena of gradients, if windows are longer than one.
/// Numerics  sums in f32, in the order of the passes.
/// Threads   that of the trainer. What is given must outlive it.
class GradientAccumulation final : public GradientPath {
 public:
  struct Parts {
    kernels::Device& device;
    kernels::Stream& stream;
    nn::Gradients sums;
    DistributedDataParallel& next;  ///< hears of the window's last backward pass alone
    kernels::accumulate::Variant accumulate;
  };
  /// `accumulates`: whether a window may have more than one pass.
  GradientAccumulation(const Parts& parts, bool accumulates);

  /// Errors    InvalidArgument for a second pass where windows have one.
  const nn::Gradients& begin(Pass pass) override;
  void enqueue_end() override;

  void before_forward() override {}
  void before_backward() override;
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int>) override {}
  void gradient_ready(int parameter) override;
  std::size_t bytes() const { return memory_.size(); }

 private:
  void enqueue_add(const float* newest, float* sum, std::size_t elements);

  Parts parts_;
  kernels::Buffer memory_;  // empty where windows have one pass
  nn::Gradients newest_;
  Pass pass_;
  bool riders_added_ = false;  // in this pass
};

}  // namespace gradring::train
