// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include "kernels/runtime/error.h"
#include "kernels/variant.h"
#include "nn/backend/kernels/activation_plans.h"
#include "nn/backend/kernels/conv2d_plan.h"
#include "nn/backend/kernels/conv_relu_pool_plan.h"
#include "nn/backend/kernels/cross_entropy_plan.h"
#include "nn/backend/kernels/linear_cross_entropy_plan.h"
#include "nn/backend/kernels/linear_plan.h"
#include "nn/layers/overloaded.h"

namespace gradring::nn {

using kernels::find_variant;
using kernels::pick_variant;

namespace {

/// The variant of that name; the best one for auto.
template <class Variant>
const Variant& choose(std::span<const Variant> table, const std::string& name, const kernels::Device& device,
                      kernels::DType dtype) {
  if (name == kAuto) return pick_variant(table, device, dtype);
  const Variant& named = find_variant(table, name);
  if (named.supports(device, dtype)) return named;
  throw InvalidArgument("the variant '" + name + "' does not compute " + std::string(kernels::name_of(dtype)) + " on " +
                        device.id().to_string() + ": name another, or auto");
}

}  // namespace

std::unique_ptr<Plan> KernelPlans::plan(const NodeSpec& node) const {
  const auto pick = [&](const auto& table, const std::string& name = std::string(kAuto)) {
    return choose(table, name, device_, node.dtype);
  };
  return std::visit(
      Overloaded{
          [&](const Conv2d&) -> std::unique_ptr<Plan> {
            return std::make_unique<Conv2dPlan>(node, pick(kernels_.conv2d, conv_.plain), pick(kernels_.bias));
          },
          [&](const Linear&) -> std::unique_ptr<Plan> {
            return std::make_unique<LinearPlan>(node, pick(kernels_.gemm, gemm_), pick(kernels_.bias));
          },
          [&](const Relu&) -> std::unique_ptr<Plan> { return std::make_unique<ReluPlan>(node, pick(kernels_.relu)); },
          [&](const MaxPool2d&) -> std::unique_ptr<Plan> {
            return std::make_unique<MaxPool2dPlan>(node, pick(kernels_.max_pool2d));
          },
          [&](const Flatten&) -> std::unique_ptr<Plan> {
            throw InvalidArgument("a flatten is no work and needs no plan: the program leaves it out");
          }},
      node.layer);
}

std::unique_ptr<Plan> KernelPlans::plan_fused(std::span<const NodeSpec> nodes) const {
  if (conv_.fused.empty() || kernels_.conv_relu_pool.empty() || !ConvReluPoolPlan::fits(nodes)) return nullptr;
  return std::make_unique<ConvReluPoolPlan>(nodes,
                                            choose(kernels_.conv_relu_pool, conv_.fused, device_, nodes[0].dtype));
}

std::unique_ptr<LossPlan> KernelPlans::plan_cross_entropy(const CrossEntropySpec& spec) const {
  return std::make_unique<CrossEntropyPlan>(spec, pick_variant(kernels_.softmax_cross_entropy, device_, spec.dtype));
}

std::unique_ptr<LossPlan> KernelPlans::plan_fused_loss(const CrossEntropySpec& spec, const NodeSpec* last) const {
  if (!last || kernels_.linear_cross_entropy.empty() || !LinearCrossEntropyPlan::fits(spec, *last)) return nullptr;
  return std::make_unique<LinearCrossEntropyPlan>(spec, *last,
                                                  pick_variant(kernels_.linear_cross_entropy, device_, spec.dtype));
}

}  // namespace gradring::nn
