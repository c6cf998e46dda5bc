// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/max_pool2d/max_pool2d.h"
#include "kernels/relu/relu.h"
#include "nn/backend/backend.h"
#include "nn/backend/kernels/single_node_plan.h"

namespace gradring::nn {

class ReluPlan final : public SingleNodePlan {
 public:
  ReluPlan(const NodeSpec& node, const kernels::relu::Variant& relu)
      : dtype_(node.dtype), sample_elements_(node.output.with_batch(1).elements()), relu_(relu) {}

  std::string description() const override { return "relu/" + std::string(relu_.name); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  kernels::DType dtype_;
  std::int64_t sample_elements_;
  kernels::relu::Variant relu_;
};

/// Saves one code a window: which of its elements was the maximum.
class MaxPool2dPlan final : public SingleNodePlan {
 public:
  MaxPool2dPlan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool);

  std::size_t saved_bytes() const override;
  std::string description() const override { return "max_pool2d/" + std::string(pool_.name); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  kernels::max_pool2d::Geometry geometry_for(std::int64_t batch) const;

  kernels::DType dtype_;
  kernels::max_pool2d::Geometry geometry_;
  kernels::max_pool2d::Variant pool_;
};

}  // namespace gradring::nn
