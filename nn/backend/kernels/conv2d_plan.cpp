// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/conv2d_plan.h"

namespace gradring::nn {

kernels::conv2d::Geometry conv2d_geometry(const NodeSpec& node) {
  const auto& layer = std::get<Conv2d>(node.layer);
  return {.batch = node.input[0],
          .in_height = node.input[1],
          .in_width = node.input[2],
          .in_channels = layer.in_channels,
          .out_channels = layer.out_channels,
          .kernel_height = layer.kernel,
          .kernel_width = layer.kernel,
          .stride = layer.stride,
          .padding = layer.padding};
}

Conv2dPlan::Conv2dPlan(const NodeSpec& node, const kernels::conv2d::Variant& conv, const kernels::bias::Variant& bias)
    : dtype_(node.dtype), geometry_(conv2d_geometry(node)), conv_(conv), bias_(bias) {}

kernels::conv2d::Geometry Conv2dPlan::geometry_for(std::int64_t batch) const {
  kernels::conv2d::Geometry geometry = geometry_;
  geometry.batch = batch;
  return geometry;
}

void Conv2dPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  const auto geometry = geometry_for(pass.batch);
  conv_.forward(stream, {.geometry = geometry, .dtype = dtype_, .x = pass.x, .w = pass.parameters[0], .y = pass.y});
  bias_.add(stream, {.dtype = dtype_,
                     .rows = geometry.batch * geometry.out_height() * geometry.out_width(),
                     .channels = geometry.out_channels,
                     .x = pass.y,
                     .bias = pass.parameters[1],
                     .y = pass.y});
}

void Conv2dPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  const auto geometry = geometry_for(pass.batch);
  bias_.grad(stream, {.dtype = dtype_,
                      .rows = geometry.batch * geometry.out_height() * geometry.out_width(),
                      .channels = geometry.out_channels,
                      .dy = pass.dy,
                      .db = pass.gradients[1],
                      .accumulate = false});
  conv_.wgrad(stream, {.geometry = geometry,
                       .dtype = dtype_,
                       .x = pass.x,
                       .dy = pass.dy,
                       .dw = pass.gradients[0],
                       .accumulate = false,
                       .workspace = pass.workspace});
  if (pass.dx)
    conv_.dgrad(stream, {.geometry = geometry, .dtype = dtype_, .dy = pass.dy, .w = pass.parameters[0], .dx = pass.dx});
}

}  // namespace gradring::nn
