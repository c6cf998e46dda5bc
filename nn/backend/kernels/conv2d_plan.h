// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/bias/bias.h"
#include "kernels/conv2d/conv2d.h"
#include "nn/backend/backend.h"
#include "nn/backend/kernels/single_node_plan.h"

namespace gradring::nn {

/// Of a node that is a convolution.
kernels::conv2d::Geometry conv2d_geometry(const NodeSpec& node);

/// Convolution, then bias, by two kernels each way.
class Conv2dPlan final : public SingleNodePlan {
 public:
  Conv2dPlan(const NodeSpec& node, const kernels::conv2d::Variant& conv, const kernels::bias::Variant& bias);

  std::size_t workspace_bytes() const override { return conv_.workspace_bytes(geometry_); }
  std::string description() const override { return "conv2d/" + std::string(conv_.name); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  kernels::conv2d::Geometry geometry_for(std::int64_t batch) const;

  kernels::DType dtype_;
  kernels::conv2d::Geometry geometry_;
  kernels::conv2d::Variant conv_;
  kernels::bias::Variant bias_;
};

}  // namespace gradring::nn
