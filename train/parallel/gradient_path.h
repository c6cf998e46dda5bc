// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>

#include "nn/parameter/gradients.h"
#include "nn/program/step_observer.h"

namespace gradring::train {

/// What becomes of the gradients of a window of backward passes (micro-batches) that make one step: where each pass leaves
/// them, and how they come to be the sums of the window over all ranks.
///
///   for each pass:  begin, forward and backward with this observer, end;  after the last one the sums are there
class GradientPath : public nn::StepObserver {
 public:
  /// Where a pass stands in its window.
  struct Pass {
    bool first = true;
    bool last = true;
    auto operator<=>(const Pass&) const = default;
  };
  /// Begins a pass, and returns where it writes to, riders and all.
  virtual const nn::Gradients& begin(Pass pass) = 0;
  /// What gradients are multiplied by, in device memory: for who must take it away. Before the first pass.
  virtual void scaled_by(const float* /*loss_scale*/) {}
  /// Everything of the pass is enqueued.
  virtual void enqueue_end() = 0;
};

}  // namespace gradring::train
