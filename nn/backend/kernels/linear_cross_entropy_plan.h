// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// The last linear layer, softmax, cross-entropy and all their gradients in one: neither the logits' gradient nor a rounding
/// of it lies between them.
class LinearCrossEntropyPlan final : public LossPlan {
 public:
  /// Whether `last` is a linear layer to few enough classes.
  static bool fits(const CrossEntropySpec& spec, const NodeSpec& last);
  /// For what fits.
  LinearCrossEntropyPlan(const CrossEntropySpec& spec, const NodeSpec& last,
                         const kernels::linear_cross_entropy::Variant& kernel)
      : spec_(spec), layer_(std::get<Linear>(last.layer)), kernel_(kernel) {}

  std::size_t nodes() const override { return 1; }
  std::size_t workspace_bytes() const override {
    return kernels::linear_cross_entropy::workspace_bytes(spec_.rows, spec_.classes);
  }
  std::string description() const override { return "linear_cross_entropy/" + std::string(kernel_.name); }
  void enqueue(kernels::Stream& stream, const LossPass& pass) override;

 private:
  CrossEntropySpec spec_;
  Linear layer_;
  kernels::linear_cross_entropy::Variant kernel_;
};

}  // namespace gradring::nn
