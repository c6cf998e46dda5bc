// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/gradient_accumulation.h"

#include <utility>

namespace gradring::train {

GradientAccumulation::GradientAccumulation(const Parts& parts, std::unique_ptr<GradientPath> next)
    : parts_(parts),
      next_(std::move(next)),
      memory_(parts.device.allocate(parts.places.layout.elements() * sizeof(float))),
      sums_(nn::gradients_in({parts.places.layout, memory_.as<float>()})) {}

const nn::Gradients& GradientAccumulation::begin(Pass pass) {
  pass_ = pass;
  riders_added_ = pass.first;
  if (pass.last) return next_->begin({});
  return pass.first ? sums_ : parts_.places;
}

void GradientAccumulation::before_backward() {
  if (pass_.last) next_->before_backward();
}

void GradientAccumulation::gradients_begin(std::span<const int> parameters) {
  if (pass_.last) next_->gradients_begin(parameters);
}

void GradientAccumulation::gradient_ready(int parameter) {
  if (!riders_added_) enqueue_add_riders();
  if (!pass_.first) enqueue_add(parameter);
  if (pass_.last) next_->gradient_ready(parameter);
}

void GradientAccumulation::enqueue_end() {
  if (pass_.last) next_->enqueue_end();
}

void GradientAccumulation::enqueue_add(int parameter) {
  enqueue_add(parts_.places.parameter(parameter), sums_.parameter(parameter),
              sums_.layout.parameter(parameter).elements);
}

/// They are ready before all gradients, and leave with the last bucket or before.
void GradientAccumulation::enqueue_add_riders() {
  enqueue_add(parts_.places.riders, sums_.riders, sums_.layout.riders().elements);
  riders_added_ = true;
}

void GradientAccumulation::enqueue_add(float* newest, float* sum, std::size_t elements) {
  parts_.accumulate.run(parts_.stream, {.dtype = kernels::DType::f32,
                                        .x = pass_.last ? sum : newest,
                                        .y = pass_.last ? newest : sum,
                                        .elements = elements});
}

}  // namespace gradring::train
