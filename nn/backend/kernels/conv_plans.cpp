// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/layer_plans.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::Stream;

class Conv2dPlan final : public Plan {
 public:
  Conv2dPlan(const NodeSpec& node, const kernels::conv2d::Variant& conv, const kernels::bias::Variant& bias)
      : dtype_(node.dtype), geometry_(conv2d_geometry(node)), conv_(conv), bias_(bias) {}

  std::size_t nodes() const override { return 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return conv_.workspace_bytes(geometry_); }
  std::string description() const override { return "conv2d/" + std::string(conv_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    const auto geometry = geometry_for(pass.batch);
    conv_.forward(stream, {.geometry = geometry, .dtype = dtype_, .x = pass.x, .w = pass.parameters[0], .y = pass.y});
    bias_.add(stream, {.dtype = dtype_,
                       .rows = rows(geometry),
                       .channels = geometry.out_channels,
                       .x = pass.y,
                       .bias = pass.parameters[1],
                       .y = pass.y});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    const auto geometry = geometry_for(pass.batch);
    bias_.grad(stream, {.dtype = dtype_,
                        .rows = rows(geometry),
                        .channels = geometry.out_channels,
                        .dy = pass.dy,
                        .db = pass.gradients[1]});
    conv_.wgrad(stream, {.geometry = geometry,
                         .dtype = dtype_,
                         .x = pass.x,
                         .dy = pass.dy,
                         .dw = pass.gradients[0],
                         .workspace = pass.workspace});
    if (pass.dx)
      conv_.dgrad(stream,
                  {.geometry = geometry, .dtype = dtype_, .dy = pass.dy, .w = pass.parameters[0], .dx = pass.dx});
  }

 private:
  kernels::conv2d::Geometry geometry_for(std::int64_t batch) const {
    auto geometry = geometry_;
    geometry.batch = batch;
    return geometry;
  }
  static std::int64_t rows(const kernels::conv2d::Geometry& geometry) {
    return geometry.batch * geometry.out_height() * geometry.out_width();
  }

  DType dtype_;
  kernels::conv2d::Geometry geometry_;
  kernels::conv2d::Variant conv_;
  kernels::bias::Variant bias_;
};

class ReluPlan final : public Plan {
 public:
  ReluPlan(const NodeSpec& node, const kernels::relu::Variant& relu)
      : dtype_(node.dtype), sample_elements_(node.output.with_batch(1).elements()), relu_(relu) {}

  std::size_t nodes() const override { return 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }
  std::string description() const override { return "relu/" + std::string(relu_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    relu_.forward(stream, {.dtype = dtype_, .x = pass.x, .y = pass.y, .elements = elements(pass.batch)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    relu_.backward(stream,
                   {.dtype = dtype_, .y = pass.y, .dy = pass.dy, .dx = pass.dx, .elements = elements(pass.batch)});
  }

 private:
  std::size_t elements(std::int64_t batch) const { return static_cast<std::size_t>(batch * sample_elements_); }

  DType dtype_;
  std::int64_t sample_elements_;
  kernels::relu::Variant relu_;
};

class MaxPool2dPlan final : public Plan {
 public:
  MaxPool2dPlan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool) : dtype_(node.dtype), pool_(pool) {
    const auto& layer = std::get<MaxPool2d>(node.layer);
    geometry_ = {.batch = node.input[0],
                 .height = node.input[1],
                 .width = node.input[2],
                 .channels = node.input[3],
                 .window = layer.window,
                 .stride = layer.stride};
  }

  std::size_t nodes() const override { return 1; }
  std::size_t saved_bytes() const override { return static_cast<std::size_t>(geometry_.out_elements()); }
  std::size_t workspace_bytes() const override { return 0; }
  std::string description() const override { return "max_pool2d/" + std::string(pool_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    pool_.forward(stream, {.geometry = geometry_for(pass.batch),
                           .dtype = dtype_,
                           .x = pass.x,
                           .y = pass.y,
                           .codes = reinterpret_cast<std::uint8_t*>(pass.saved)});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (!pass.dx) return;
    pool_.backward(stream, {.geometry = geometry_for(pass.batch),
                            .dtype = dtype_,
                            .dy = pass.dy,
                            .codes = reinterpret_cast<const std::uint8_t*>(pass.saved),
                            .dx = pass.dx});
  }

 private:
  kernels::max_pool2d::Geometry geometry_for(std::int64_t batch) const {
    auto geometry = geometry_;
    geometry.batch = batch;
    return geometry;
  }

  DType dtype_;
  kernels::max_pool2d::Geometry geometry_;
  kernels::max_pool2d::Variant pool_;
};

class ConvReluPoolPlan final : public Plan {
 public:
  static constexpr std::size_t kNodes = 3;

  ConvReluPoolPlan(std::span<const NodeSpec> nodes, const kernels::conv_relu_pool::Variant& variant)
      : dtype_(nodes[0].dtype),
        geometry_{.conv = conv2d_geometry(nodes[0]), .window = std::get<MaxPool2d>(nodes[2].layer).window},
        variant_(variant) {}

  std::size_t nodes() const override { return kNodes; }
  std::size_t saved_bytes() const override { return static_cast<std::size_t>(geometry_.code_bytes()); }
  std::size_t workspace_bytes() const override { return variant_.workspace_bytes(geometry_); }
  std::string description() const override { return "conv_relu_pool/" + std::string(variant_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    variant_.forward(stream, {.geometry = geometry_for(pass.batch),
                              .dtype = dtype_,
                              .x = pass.x,
                              .w = pass.parameters[0],
                              .b = pass.parameters[1],
                              .y = pass.y,
                              .codes = reinterpret_cast<std::uint8_t*>(pass.saved),
                              .workspace = pass.workspace});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    variant_.backward(stream, {.geometry = geometry_for(pass.batch),
                               .dtype = dtype_,
                               .x = pass.x,
                               .w = pass.parameters[0],
                               .dy = pass.dy,
                               .codes = reinterpret_cast<const std::uint8_t*>(pass.saved),
                               .dx = pass.dx,
                               .dw = pass.gradients[0],
                               .db = pass.gradients[1],
                               .workspace = pass.workspace});
  }

 private:
  kernels::conv_relu_pool::Geometry geometry_for(std::int64_t batch) const {
    auto geometry = geometry_;
    geometry.conv.batch = batch;
    return geometry;
  }

  DType dtype_;
  kernels::conv_relu_pool::Geometry geometry_;
  kernels::conv_relu_pool::Variant variant_;
};

}  // namespace

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

std::unique_ptr<Plan> make_conv2d_plan(const NodeSpec& node, const kernels::conv2d::Variant& conv,
                                       const kernels::bias::Variant& bias) {
  return std::make_unique<Conv2dPlan>(node, conv, bias);
}

std::unique_ptr<Plan> make_relu_plan(const NodeSpec& node, const kernels::relu::Variant& relu) {
  return std::make_unique<ReluPlan>(node, relu);
}

std::unique_ptr<Plan> make_max_pool2d_plan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool) {
  return std::make_unique<MaxPool2dPlan>(node, pool);
}

bool fits_conv_relu_pool(std::span<const NodeSpec> nodes) {
  if (nodes.size() < ConvReluPoolPlan::kNodes || !std::holds_alternative<Conv2d>(nodes[0].layer) ||
      !std::holds_alternative<Relu>(nodes[1].layer))
    return false;
  const auto* pool = std::get_if<MaxPool2d>(&nodes[2].layer);
  return pool && pool->stride == pool->window && pool->window <= kernels::conv_relu_pool::kMostWindow;
}

std::unique_ptr<Plan> make_conv_relu_pool_plan(std::span<const NodeSpec> nodes,
                                               const kernels::conv_relu_pool::Variant& variant) {
  return std::make_unique<ConvReluPoolPlan>(nodes, variant);
}

}  // namespace gradring::nn
