// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/onednn_conv2d.h"

#include "nn/backend/cpu/onednn_layers.h"
#include "nn/backend/cpu/onednn_plan.h"

namespace gradring::nn::onednn {

std::unique_ptr<Plan> plan_conv2d(const NodeSpec& node, const kernels::relu::Variant* relu) {
  return std::make_unique<WeightedPlan<Conv2dPrimitives>>(node, relu);
}

}  // namespace gradring::nn::onednn
