// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/linear_cross_entropy_plan.h"

namespace gradring::nn {

bool LinearCrossEntropyPlan::fits(const CrossEntropySpec& spec, const NodeSpec& last) {
  return std::holds_alternative<Linear>(last.layer) && last.dtype == spec.dtype &&
         spec.classes <= kernels::linear_cross_entropy::kMostClasses;
}

void LinearCrossEntropyPlan::enqueue(kernels::Stream& stream, const LossPass& pass) {
  const bool trains = pass.dx != nullptr;
  kernel_.run(stream, {.dtype = spec_.dtype,
                       .rows = pass.rows,
                       .in = layer_.in_features,
                       .classes = spec_.classes,
                       .h = pass.x,
                       .w = pass.parameters[0],
                       .b = pass.parameters[1],
                       .labels = pass.labels,
                       .scale = pass.scale,
                       .loss_scale = pass.loss_scale,
                       .logits = pass.logits,
                       .dh = pass.dx,
                       .dw = trains ? pass.gradients[0] : nullptr,
                       .db = trains ? pass.gradients[1] : nullptr,
                       .loss_sum = pass.loss_sum,
                       .correct = pass.correct,
                       .workspace = pass.workspace});
}

}  // namespace gradring::nn
