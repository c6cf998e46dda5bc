// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// NVIDIA GPUs, by our own kernels.
class CudaBackend final : public Backend {
 public:
  /// `kernels` are nvcc's copies; `device` must outlive the backend and its plans.
  ///
  /// Errors    InvalidArgument if there is nothing of a chosen name.
  CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options);

  std::string_view name() const override { return "cuda"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec) override {
    return plans_.plan_cross_entropy(spec);
  }

 private:
  KernelPlans plans_;
};

}  // namespace gradring::nn
