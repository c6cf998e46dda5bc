// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {

/// The plain loops of every kernel folder, one node at a time: complete, slow, and the truth in tests. CPU only.
class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(const kernels::Device& device);

  std::string_view name() const override { return "reference"; }
  std::unique_ptr<Plan> plan(std::span<const NodeSpec> nodes) override { return plans_.plan(nodes.front()); }
  std::unique_ptr<LossPlan> plan_cross_entropy(const CrossEntropySpec& spec, const NodeSpec*) override {
    return plans_.plan_cross_entropy(spec);
  }

 private:
  KernelPlans plans_;
};

}  // namespace gradring::nn
