// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_accumulation.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

GradientAccumulation::GradientAccumulation(const Parts& parts, bool accumulates)
    : parts_(parts),
      memory_(parts.device.allocate(accumulates ? parts.sums.layout.elements() * sizeof(float) : 0)),
      newest_(nn::gradients_in({parts.sums.layout, memory_.as<float>()})) {}

const nn::Gradients& GradientAccumulation::begin(Pass pass) {
  check(pass.first || memory_.size() > 0, "gradients are to be accumulated, but windows were said to have one pass");
  pass_ = pass;
  riders_added_ = pass.first;
  return pass.first ? parts_.sums : newest_;
}

void GradientAccumulation::before_backward() {
  if (pass_.last) parts_.next.before_backward();
}

void GradientAccumulation::gradient_ready(int parameter) {
  const nn::ArenaLayout& layout = parts_.sums.layout;
  if (!riders_added_)  // they may leave with any bucket, and are ready first
    enqueue_add(newest_.riders, parts_.sums.riders, layout.riders().elements);
  riders_added_ = true;
  if (!pass_.first)
    enqueue_add(newest_.parameter(parameter), parts_.sums.parameter(parameter), layout.parameter(parameter).elements);
  if (pass_.last) parts_.next.gradient_ready(parameter);
}

void GradientAccumulation::enqueue_end() {
  if (pass_.last) parts_.next.enqueue_join();
}

void GradientAccumulation::enqueue_add(const float* newest, float* sum, std::size_t elements) {
  parts_.accumulate.run(parts_.stream, {.dtype = kernels::DType::f32, .x = newest, .y = sum, .elements = elements});
}

}  // namespace gradring::train
