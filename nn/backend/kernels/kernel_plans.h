// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "nn/backend/backend.h"
#include "nn/backend/kernels/variant_choice.h"

namespace gradring::nn {

/// Plans that are made of table entries of kernels/ alone, one node each, or a few
/// where a kernel has them fused. Every backend is built from them: `reference`
/// from the plain loops, `cpu` and `cuda` from the kernels, with a library's plans in front where those are better.
///
/// Errors    InvalidArgument if a table has no variant of the chosen name, or none for the device and the type.
class KernelPlans {
 public:
  KernelPlans(const kernels::KernelSet& kernels, const kernels::Device& device, const VariantChoice& choice = {})
      : kernels_(kernels), device_(device), conv_(ConvChoice::of(choice.conv, kernels)), gemm_(choice.gemm) {}

  std::unique_ptr<Plan> plan(const NodeSpec& node) const;
  /// A plan of several nodes at once, where there is a kernel for them; else null.
  std::unique_ptr<Plan> plan_fused(std::span<const NodeSpec> nodes) const;
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec) const;
  /// The same together with the node before it, where there is one that a kernel computes at once with the loss; else null.
  std::unique_ptr<LossPlan> plan_fused_loss(const CrossEntropySpec& spec, const NodeSpec* last) const;

 private:
  kernels::KernelSet kernels_;
  const kernels::Device& device_;
  ConvChoice conv_;
  std::string gemm_;
};

}  // namespace gradring::nn
