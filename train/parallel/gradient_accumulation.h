// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"
#include "nn/parameter/arena.h"
#include "nn/program/step_observer.h"

namespace gradring::train {

/// Sums the gradients of a window of backward passes (micro-batches) that make one step. The first writes the sums; each
/// later one writes an arena of its own, of which a tensor is added as soon as it is ready, so that the last pass can hand
/// tensor by tensor on to who sums over the ranks. The passes before the last are nobody else's business: PyTorch's no_sync.
///
/// Memory    one more arena of gradients, if windows are longer than one.
/// Numerics  sums in f32, in the order of the passes.
/// Threads   that of the trainer. The arena, the stream and `next` must outlive it.
class GradientAccumulation final : public nn::StepObserver {
 public:
  struct Parts {
    kernels::Device& device;
    kernels::Stream& stream;
    const nn::Arena& sums;
    StepObserver& next;  ///< hears of every forward pass, and of the window's last backward pass alone
    kernels::accumulate::Variant accumulate;
  };
  /// `accumulates`: whether a window may have more than one pass.
  GradientAccumulation(const Parts& parts, bool accumulates);

  /// Where the next pass stands in its window.
  struct Pass {
    bool first = true;
    bool last = true;
    auto operator<=>(const Pass&) const = default;
  };
  /// Begins a pass, and returns the arena that it writes to, riders and all.
  ///
  /// Errors    InvalidArgument for a second pass where windows have one.
  const nn::Arena& begin(Pass pass);

  void before_forward() override;
  void before_backward() override;
  void gradient_ready(int parameter) override;

 private:
  void enqueue_add(const nn::ArenaLayout::Slice& slice);

  Parts parts_;
  kernels::Buffer memory_;  // empty where windows have one pass
  nn::Arena newest_;
  Pass pass_;
  bool riders_added_ = false;  // in this pass
};

}  // namespace gradring::train
