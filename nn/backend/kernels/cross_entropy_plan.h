// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

class CrossEntropyPlan final : public LossPlan {
 public:
  CrossEntropyPlan(const CrossEntropySpec& spec, const kernels::softmax_cross_entropy::Variant& kernel)
      : spec_(spec), kernel_(kernel) {}

  std::size_t nodes() const override { return 0; }
  std::size_t workspace_bytes() const override { return kernels::softmax_cross_entropy::workspace_bytes(spec_.rows); }
  std::string description() const override { return "softmax_cross_entropy/" + std::string(kernel_.name); }
  void enqueue(kernels::Stream& stream, const LossPass& pass) override;

 private:
  CrossEntropySpec spec_;
  kernels::softmax_cross_entropy::Variant kernel_;
};

}  // namespace gradring::nn
