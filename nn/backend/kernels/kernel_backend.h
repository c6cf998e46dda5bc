// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// Everything by the kernels of kernels/ and no library, layer by layer: on a GPU the hand-written path, on a CPU the same
/// text on the execution model.
class KernelBackend final : public Backend {
 public:
  KernelBackend(const kernels::KernelSet& kernels, const kernels::Device& device) : plans_(kernels, device) {}

  std::string_view name() const override { return "kernels"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override {
    if (auto plan = plans_.plan_fused(nodes)) return plan;
    return plans_.plan(nodes.front());
  }
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override {
    if (auto plan = plans_.plan_fused_loss(spec, last)) return plan;
    return plans_.plan_cross_entropy(spec);
  }

 private:
  KernelPlans plans_;
};

}  // namespace gradring::nn
