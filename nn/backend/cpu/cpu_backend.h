// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// The CPU: our own kernels for convolutions that are pooled, oneDNN for products and other convolutions where it is built
/// in, our kernels for the rest. f16 and bf16 are rounded where a GPU rounds them, and computed in f32 (widened_plan.h).
class CpuBackend final : public Backend {
 public:
  /// `threads` is how many oneDNN computes with, for work that the calling thread runs; 0: as many as OpenMP thinks fit.
  explicit CpuBackend(const kernels::Device& device, unsigned threads = 0);

  std::string_view name() const override { return "cpu"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec) override {
    return plans_.plan_cross_entropy(spec);
  }

 private:
  std::unique_ptr<Plan> plan_f32(std::span<const NodeSpec> nodes) const;

  KernelPlans plans_;
  kernels::relu::Variant relu_;
  kernels::cast::Variant cast_;
};

}  // namespace gradring::nn
