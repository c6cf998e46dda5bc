// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// The CPU: our own kernels for convolutions that are pooled, oneDNN for products and other convolutions where it is built
/// in, our kernels for the rest. f16 and bf16 are rounded where a GPU rounds them, and computed in f32 (widened_plan.h). A
/// choice other than auto forces one of our kernels, or oneDNN, by its name.
class CpuBackend final : public Backend {
 public:
  static constexpr std::string_view kLibrary = "onednn";

  /// `threads` is how many oneDNN computes with, for work that the calling thread runs; 0: as many as OpenMP thinks fit.
  ///
  /// Errors    InvalidArgument if there is nothing of a chosen name, or this build has no oneDNN and it was chosen.
  explicit CpuBackend(const kernels::Device& device, unsigned threads = 0, const VariantChoice& choice = {});

  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec* last) override;

 private:
  /// In the type of the nodes.
  std::unique_ptr<Plan> plan_as_it_is(std::span<const NodeSpec> nodes, const std::string& choice) const;

  VariantChoice choice_;
  KernelPlans plans_;
  kernels::relu::Variant relu_;
  kernels::cast::Variant cast_;
};

}  // namespace gradring::nn
