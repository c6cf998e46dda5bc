// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "kernels/conv_relu_pool/conv_relu_pool.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

/// Convolution, bias, ReLU and max pooling by one kernel each way: three nodes. Saves one code a window, and no output of
/// the convolution.
class ConvReluPoolPlan final : public Plan {
 public:
  /// Whether the first three nodes are what this plan computes.
  static bool fits(std::span<const NodeSpec> nodes);

  ConvReluPoolPlan(std::span<const NodeSpec> nodes, const kernels::conv_relu_pool::Variant& variant);

  std::size_t nodes() const override { return kNodes; }
  std::size_t saved_bytes() const override;
  std::size_t workspace_bytes() const override { return variant_.workspace_bytes(geometry_); }
  std::string description() const override { return "conv_relu_pool/" + std::string(variant_.name); }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override;
  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override;

 private:
  static constexpr std::size_t kNodes = 3;
  kernels::conv_relu_pool::Geometry geometry_for(std::int64_t batch) const;

  kernels::DType dtype_;
  kernels::conv_relu_pool::Geometry geometry_;
  kernels::conv_relu_pool::Variant variant_;
};

}  // namespace gradring::nn
