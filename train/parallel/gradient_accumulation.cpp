// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_accumulation.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

GradientAccumulation::GradientAccumulation(const Parts& parts, bool accumulates)
    : parts_(parts),
      memory_(parts.device.allocate(accumulates ? parts.sums.layout.elements() * sizeof(float) : 0)),
      newest_{parts.sums.layout, memory_.as<float>()} {}

const nn::Arena& GradientAccumulation::begin(Pass pass) {
  check(pass.first || memory_.size() > 0, "gradients are to be accumulated, but windows were said to have one pass");
  pass_ = pass;
  riders_added_ = pass.first;
  return pass.first ? parts_.sums : newest_;
}

void GradientAccumulation::before_forward() { parts_.next.before_forward(); }

void GradientAccumulation::before_backward() {
  if (pass_.last) parts_.next.before_backward();
}

void GradientAccumulation::gradient_ready(int parameter) {
  if (!riders_added_) enqueue_add(parts_.sums.layout.riders());  // they may leave with any bucket, and are ready first
  riders_added_ = true;
  if (!pass_.first) enqueue_add(parts_.sums.layout.parameter(parameter));
  if (pass_.last) parts_.next.gradient_ready(parameter);
}

void GradientAccumulation::enqueue_add(const nn::ArenaLayout::Slice& slice) {
  parts_.accumulate.run(parts_.stream, {.dtype = kernels::DType::f32,
                                        .x = newest_.data + slice.offset,
                                        .y = parts_.sums.data + slice.offset,
                                        .elements = slice.elements});
}

}  // namespace gradring::train
