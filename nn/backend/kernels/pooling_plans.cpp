// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/kernel_plans.h"
#include "nn/layers/avg_pool2d.h"
#include "nn/layers/max_pool2d.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::pick_variant;
using kernels::Stream;

/// Saves one code per window: the index of its maximum.
class MaxPool2dPlan final : public Plan {
 public:
  MaxPool2dPlan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool) : dtype_(node.dtype), pool_(pool) {
    const auto& layer = std::get<MaxPool2d>(node.layer);
    geometry_ = {.batch = node.input[0],
                 .height = node.input[1],
                 .width = node.input[2],
                 .channels = node.input[3],
                 .window = layer.window,
                 .stride = layer.stride,
                 .padding = layer.padding};
  }

  std::size_t saved_bytes() const override { return static_cast<std::size_t>(geometry_.out_elements()); }
  std::string description() const override { return "max_pool2d/" + std::string(pool_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    pool_.forward(stream, {.geometry = with_batch(geometry_, pass.batch),
                           .dtype = dtype_,
                           .x = pass.x,
                           .y = pass.y,
                           .codes = reinterpret_cast<std::uint8_t*>(pass.saved)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    pool_.backward(stream, {.geometry = with_batch(geometry_, pass.batch),
                            .dtype = dtype_,
                            .dy = pass.dy,
                            .codes = reinterpret_cast<const std::uint8_t*>(pass.saved),
                            .dx = pass.dx});
  }

 private:
  DType dtype_;
  kernels::max_pool2d::Geometry geometry_;
  kernels::max_pool2d::Variant pool_;
};

class AvgPool2dPlan final : public Plan {
 public:
  AvgPool2dPlan(const NodeSpec& node, const kernels::avg_pool2d::Geometry& geometry,
                const kernels::avg_pool2d::Variant& pool)
      : dtype_(node.dtype), geometry_(geometry), pool_(pool) {}

  std::string description() const override { return "avg_pool2d/" + std::string(pool_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    pool_.forward(stream, {.geometry = with_batch(geometry_, pass.batch), .dtype = dtype_, .x = pass.x, .y = pass.y});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    pool_.backward(stream,
                   {.geometry = with_batch(geometry_, pass.batch), .dtype = dtype_, .dy = pass.dy, .dx = pass.dx});
  }

 private:
  DType dtype_;
  kernels::avg_pool2d::Geometry geometry_;
  kernels::avg_pool2d::Variant pool_;
};

}  // namespace

std::unique_ptr<Plan> KernelPlans::plan_of(const MaxPool2d&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<MaxPool2dPlan>(nodes[0], pick_variant(kernels_.max_pool2d, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const AvgPool2d& layer, std::span<const NodeSpec> nodes) const {
  const Shape& x = nodes[0].input;
  return std::make_unique<AvgPool2dPlan>(nodes[0],
                                         kernels::avg_pool2d::Geometry{.batch = x[0],
                                                                       .height = x[1],
                                                                       .width = x[2],
                                                                       .channels = x[3],
                                                                       .window_height = layer.window,
                                                                       .window_width = layer.window,
                                                                       .stride = layer.stride,
                                                                       .padding = layer.padding},
                                         pick_variant(kernels_.avg_pool2d, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_of(const GlobalAvgPool2d&, std::span<const NodeSpec> nodes) const {
  const Shape& x = nodes[0].input;
  return std::make_unique<AvgPool2dPlan>(nodes[0], kernels::avg_pool2d::Geometry::global(x[0], x[1], x[2], x[3]),
                                         pick_variant(kernels_.avg_pool2d, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
