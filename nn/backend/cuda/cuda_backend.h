// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/cuda_libraries.h"
#include "nn/backend/cuda/plan_choice.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// NVIDIA's libraries on one device; null where one is missing or not used.
struct CudaLibraries {
  std::shared_ptr<Cudnn> cudnn;
  std::shared_ptr<CublasLt> cublas;
};

/// NVIDIA GPUs: in f16 and bf16 our fused kernel for convolutions that are pooled, cuDNN for others, cuBLASLt for
/// products, our kernels for the rest and in place of a missing library. With --autotune, of all these and of all variants
/// of our kernels the fastest (PlanChoice), for convolutions without groups and for products. A choice other than auto
/// forces one of our kernels, or a library, by its name.
class CudaBackend final : public Backend {
 public:
  static constexpr std::string_view kConvLibrary = "cudnn";
  static constexpr std::string_view kGemmLibrary = "cublas";

  /// `kernels` are those compiled by nvcc; `device` must outlive the backend and its plans.
  ///
  /// Errors    InvalidArgument if a chosen name is unknown, or that of a library that may not be opened; DeviceError if a
  ///           chosen library is missing or does not start.
  CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options);
  /// With these libraries, for tests.
  CudaBackend(const kernels::KernelSet& kernels, kernels::Device& device, const CudaBackendOptions& options,
              CudaLibraries libraries);

  std::string_view name() const override { return "cuda"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override;

 private:
  bool fuses(kernels::DType dtype) const;
  std::unique_ptr<Plan> plan_convolution(std::span<const NodeSpec> nodes);
  std::unique_ptr<Plan> preferred_convolution(std::span<const NodeSpec> nodes);
  std::unique_ptr<Plan> preferred_product(std::span<const NodeSpec> nodes);
  /// The library's plan, or null.
  std::unique_ptr<Plan> library_plan(std::span<const NodeSpec> nodes) const;
  /// The library's plan, if there is one, and one for each of our variants, the last of their tables first.
  std::vector<std::unique_ptr<Plan>> all_plans(std::span<const NodeSpec> nodes) const;
  std::unique_ptr<Plan> fastest(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> preferred);
  std::unique_ptr<Plan> plan_product(std::span<const NodeSpec> nodes);

  kernels::KernelSet kernels_;
  const kernels::Device& device_;
  VariantChoice choice_;
  KernelPlans plans_;
  CudaLibraries libraries_;  // shared with plans
  PlanChoice plan_choice_;
};

}  // namespace gradring::nn
