// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"
#include "nn/losses/loss_plan.h"

namespace gradring::nn {

class CrossEntropyPlan final : public LossPlan {
 public:
  CrossEntropyPlan(std::int64_t rows, std::int64_t classes, const kernels::softmax_cross_entropy::Variant& kernel)
      : rows_(rows), classes_(classes), kernel_(kernel) {}

  std::size_t workspace_bytes() const override { return kernels::softmax_cross_entropy::workspace_bytes(rows_); }
  void enqueue(kernels::Stream& stream, const LossPass& pass) override;

 private:
  std::int64_t rows_;
  std::int64_t classes_;
  kernels::softmax_cross_entropy::Variant kernel_;
};

}  // namespace gradring::nn
