// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"

#include "kernels/variant.h"
#include "nn/backend/cpu/onednn.h"
#include "nn/backend/cpu/widened_plan.h"

namespace gradring::nn {

CpuBackend::CpuBackend(const kernels::Device& device, unsigned threads)
    : plans_(kernels::kernel_set(), device),
      relu_(kernels::pick_variant(kernels::kernel_set().relu, device, kernels::DType::f32)),
      cast_(kernels::pick_variant(kernels::kernel_set().cast, device, kernels::DType::f32)) {
  if (threads > 0) set_onednn_threads(threads);
}

std::unique_ptr<Plan> CpuBackend::plan(std::span<const NodeSpec> nodes) {
  if (nodes.front().dtype == kernels::DType::f32) return plan_f32(nodes);
  std::vector<NodeSpec> wide(nodes.begin(), nodes.end());
  for (NodeSpec& node : wide) node.dtype = kernels::DType::f32;
  return std::make_unique<WidenedPlan>(plan_f32(wide), nodes, cast_);
}

std::unique_ptr<Plan> CpuBackend::plan_f32(std::span<const NodeSpec> nodes) const {
  if (auto plan = plans_.plan_fused(nodes)) return plan;
  if (auto plan = plan_with_onednn(nodes, relu_)) return plan;
  return plans_.plan(nodes.front());
}

}  // namespace gradring::nn
