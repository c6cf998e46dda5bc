// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>

#include "kernels/relu/relu.h"
#include "nn/backend/backend.h"

namespace gradring::nn::onednn {

/// Convolution and bias, and the ReLU behind them if there is one, by oneDNN. Backward masks dy by y > 0 in place.
class Conv2dPlan final : public Plan {
 public:
  /// `relu` is the kernel that masks dy; null where no ReLU follows.
  Conv2dPlan(const NodeSpec& node, const kernels::relu::Variant* relu);
  ~Conv2dPlan() override;

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  struct Primitives;  // for one batch size: an epoch has two, the full batch and the short last one
  Primitives& primitives_for(std::int64_t batch);

  NodeSpec node_;
  const kernels::relu::Variant* relu_;
  std::map<std::int64_t, std::unique_ptr<Primitives>> primitives_;
};

}  // namespace gradring::nn::onednn
