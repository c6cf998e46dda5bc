// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/cross_entropy_plan.h"

namespace gradring::nn {

void CrossEntropyPlan::enqueue(kernels::Stream& stream, const LossPass& pass) {
  kernel_.run(stream, {.dtype = spec_.dtype,
                       .rows = pass.rows,
                       .classes = spec_.classes,
                       .logits = pass.x,
                       .labels = pass.labels,
                       .scale = pass.scale,
                       .loss_scale = pass.loss_scale,
                       .dlogits = pass.dx,
                       .loss_sum = pass.loss_sum,
                       .correct = pass.correct,
                       .workspace = pass.workspace});
}

}  // namespace gradring::nn
