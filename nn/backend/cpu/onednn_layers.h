// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/relu/relu.h"
#include "nn/backend/backend.h"

namespace gradring::nn::onednn {

/// The layers that oneDNN plans, each in a source file of its own. `relu` is the kernel that takes a ReLU right behind back;
/// null where none follows; it must outlive the plan.
std::unique_ptr<Plan> plan_conv2d(const NodeSpec& node, const kernels::relu::Variant* relu);
std::unique_ptr<Plan> plan_linear(const NodeSpec& node, const kernels::relu::Variant* relu);

}  // namespace gradring::nn::onednn
