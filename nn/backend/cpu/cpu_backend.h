// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// Our kernels beside oneDNN's: the backward pass of a ReLU, and of a bias whose weights are frozen.
struct OnednnHelpers {
  kernels::relu::Variant relu;
  kernels::bias::Variant bias;

  explicit OnednnHelpers(const kernels::Device& device);
};

/// The CPU: our kernels for convolutions that are pooled, oneDNN (if built in) for products and other convolutions, our
/// kernels for the rest. f16 and bf16 are computed in f32 and rounded where a GPU rounds them. A choice other than auto
/// forces one of our kernels, or oneDNN, by its name.
class CpuBackend final : public Backend {
 public:
  static constexpr std::string_view kLibrary = "onednn";

  /// `threads`: oneDNN's threads for work of the calling thread.
  ///
  /// Errors    InvalidArgument if a chosen name is unknown, or oneDNN is chosen and not built in.
  explicit CpuBackend(const kernels::Device& device, unsigned threads = 1, const VariantChoice& choice = {});

  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override;

 private:
  /// In the type of the nodes.
  std::unique_ptr<Plan> plan_in_dtype(std::span<const NodeSpec> nodes, const std::string& choice) const;

  VariantChoice choice_;
  KernelPlans plans_;
  OnednnHelpers helpers_;
  kernels::conv2d::Variant conv_;
  kernels::cast::Variant cast_;
};

/// A plan by oneDNN for the first of `nodes`, fused with a ReLU right after it; null if the node is neither a
/// convolution nor a product in f32, or this build has no oneDNN (no_onednn.cpp). `panels` computes a convolution's
/// gradient of the weights where it is faster than oneDNN (null: never), and must outlive the plan.
///
/// Errors    DeviceError if oneDNN rejects the shapes.
std::unique_ptr<Plan> plan_with_onednn(std::span<const NodeSpec> nodes, const OnednnHelpers& helpers,
                                       const kernels::conv2d::Variant* panels);

}  // namespace gradring::nn
