// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cpu/cpu_backend.h"

#include "kernels/variant.h"
#include "nn/backend/cpu/onednn.h"

namespace gradring::nn {

CpuBackend::CpuBackend(const kernels::Device& device, unsigned threads)
    : plans_(kernels::kernel_set(), device),
      relu_(kernels::pick_variant(kernels::kernel_set().relu, device, kernels::DType::f32)) {
  if (threads > 0) set_onednn_threads(threads);
}

std::unique_ptr<Plan> CpuBackend::plan(std::span<const NodeSpec> nodes) {
  if (auto plan = plans_.plan_fused(nodes)) return plan;
  if (auto plan = plan_with_onednn(nodes, relu_)) return plan;
  return plans_.plan(nodes.front());
}

}  // namespace gradring::nn
