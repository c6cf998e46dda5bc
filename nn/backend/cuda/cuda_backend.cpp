// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cuda_backend.h"

namespace gradring::nn {

CudaBackend::CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options)
    : plans_(kernels, device, {.conv = options.conv, .gemm = options.gemm}) {}

std::unique_ptr<Plan> CudaBackend::plan(std::span<const NodeSpec> nodes) {
  if (auto plan = plans_.plan_fused(nodes)) return plan;
  return plans_.plan(nodes.front());
}

}  // namespace gradring::nn
