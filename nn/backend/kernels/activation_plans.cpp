// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/activation_plans.h"

namespace gradring::nn {

void ReluPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  const auto elements = static_cast<std::size_t>(pass.batch * sample_elements_);
  relu_.forward(stream, {.dtype = dtype_, .x = pass.x, .y = pass.y, .elements = elements});
}

void ReluPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  if (!pass.dx) return;
  const auto elements = static_cast<std::size_t>(pass.batch * sample_elements_);
  relu_.backward(stream, {.dtype = dtype_, .y = pass.y, .dy = pass.dy, .dx = pass.dx, .elements = elements});
}

MaxPool2dPlan::MaxPool2dPlan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool)
    : dtype_(node.dtype), pool_(pool) {
  const auto& layer = std::get<MaxPool2d>(node.layer);
  geometry_ = {.batch = node.input[0],
               .height = node.input[1],
               .width = node.input[2],
               .channels = node.input[3],
               .window = layer.window,
               .stride = layer.stride};
}

kernels::max_pool2d::Geometry MaxPool2dPlan::geometry_for(std::int64_t batch) const {
  kernels::max_pool2d::Geometry geometry = geometry_;
  geometry.batch = batch;
  return geometry;
}

std::size_t MaxPool2dPlan::saved_bytes() const { return static_cast<std::size_t>(geometry_.out_elements()); }

void MaxPool2dPlan::enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) {
  pool_.forward(stream, {.geometry = geometry_for(pass.batch),
                         .dtype = dtype_,
                         .x = pass.x,
                         .y = pass.y,
                         .codes = reinterpret_cast<std::uint8_t*>(pass.saved)});
}

void MaxPool2dPlan::enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) {
  if (!pass.dx) return;
  pool_.backward(stream, {.geometry = geometry_for(pass.batch),
                          .dtype = dtype_,
                          .dy = pass.dy,
                          .codes = reinterpret_cast<const std::uint8_t*>(pass.saved),
                          .dx = pass.dx});
}

}  // namespace gradring::nn
