// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/conv_relu_pool_plan.h"

#include "nn/backend/kernels/conv2d_plan.h"

namespace gradring::nn {

bool ConvReluPoolPlan::fits(std::span<const NodeSpec> nodes) {
  if (nodes.size() < kNodes || !std::holds_alternative<Conv2d>(nodes[0].layer) ||
      !std::holds_alternative<Relu>(nodes[1].layer))
    return false;
  const auto* pool = std::get_if<MaxPool2d>(&nodes[2].layer);
  return pool && pool->stride == pool->window && pool->window <= kernels::conv_relu_pool::kMostWindow;
}

ConvReluPoolPlan::ConvReluPoolPlan(std::span<const NodeSpec> nodes, const kernels::conv_relu_pool::Variant& variant)
    : dtype_(nodes[0].dtype),
      geometry_{.conv = conv2d_geometry(nodes[0]), .window = std::get<MaxPool2d>(nodes[2].layer).window},
      variant_(variant) {}

kernels::conv_relu_pool::Geometry ConvReluPoolPlan::geometry_for(std::int64_t batch) const {
  kernels::conv_relu_pool::Geometry geometry = geometry_;
  geometry.conv.batch = batch;
  return geometry;
}

std::size_t ConvReluPoolPlan::saved_bytes() const { return static_cast<std::size_t>(geometry_.code_bytes()); }

void ConvReluPoolPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  variant_.forward(stream, {.geometry = geometry_for(pass.batch),
                            .dtype = dtype_,
                            .x = pass.x,
                            .w = pass.parameters[0],
                            .b = pass.parameters[1],
                            .y = pass.y,
                            .codes = reinterpret_cast<std::uint8_t*>(pass.saved),
                            .workspace = pass.workspace});
}

void ConvReluPoolPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  variant_.backward(stream, {.geometry = geometry_for(pass.batch),
                             .dtype = dtype_,
                             .x = pass.x,
                             .w = pass.parameters[0],
                             .dy = pass.dy,
                             .codes = reinterpret_cast<const std::uint8_t*>(pass.saved),
                             .dx = pass.dx,
                             .dw = pass.gradients[0],
                             .db = pass.gradients[1],
                             .accumulate = false,
                             .workspace = pass.workspace});
}

}  // namespace gradring::nn
