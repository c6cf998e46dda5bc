// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/plan_parts.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::pick_variant;
using kernels::Stream;

/// Convolution, with a ReLU after it if that is the next node: one kernel forward. Backward, the gradient of the bias
/// also masks dy by the ReLU; then come those of the weights and of x.
class ConvolutionPlan final : public Plan {
 public:
  /// `relu`: null without one.
  ConvolutionPlan(std::string_view op, const NodeSpec& node, const kernels::conv2d::Variant& conv,
                  const kernels::bias::Variant& bias, const kernels::relu::Variant* relu)
      : op_(op), dtype_(node.dtype), geometry_(conv2d_geometry(node)), conv_(conv), bias_(bias), relu_(relu) {}

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t workspace_bytes() const override { return scratch().bytes(); }
  std::size_t partial_sum_bytes() const override { return workspace_bytes(); }
  std::string description() const override { return op_ + "/" + std::string(conv_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    conv_.forward(stream, {.geometry = with_batch(geometry_, pass.batch),
                           .dtype = dtype_,
                           .x = pass.x,
                           .w = pass.parameters[0],
                           .y = pass.y,
                           .bias = pass.parameters.size() > 1 ? pass.parameters[1] : nullptr,
                           .relu = relu_ != nullptr});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    const auto geometry = with_batch(geometry_, pass.batch);
    const std::int64_t rows = geometry.batch * geometry.out_height() * geometry.out_width();
    const bool masks = relu_ && !pass.dy_is_masked;
    if (masks && !ScratchWithBias::wants_bias(pass))
      relu_->backward(stream, {.dtype = dtype_,
                               .y = pass.y,
                               .dy = pass.dy,
                               .dx = pass.dy,
                               .elements = static_cast<std::size_t>(geometry.out_elements())});
    scratch().enqueue_bias(stream, bias_, pass, dtype_, rows, masks);
    if (pass.gradients[0])
      conv_.wgrad(beside(stream, pass.partial_sums.branch),
                  {.geometry = geometry,
                   .dtype = dtype_,
                   .x = pass.x,
                   .dy = pass.dy,
                   .dw = pass.gradients[0],
                   .workspace = pass.partial_sums.workspace_or(pass.workspace),
                   .partial_sums = pass.partial_sums.list});
    if (pass.dx)
      conv_.dgrad(stream,
                  {.geometry = geometry, .dtype = dtype_, .dy = pass.dy, .w = pass.parameters[0], .dx = pass.dx});
  }

 private:
  ScratchWithBias scratch() const { return {conv_.workspace_bytes(geometry_), geometry_.out_channels}; }

  std::string op_;
  DType dtype_;
  kernels::conv2d::Geometry geometry_;
  kernels::conv2d::Variant conv_;
  kernels::bias::Variant bias_;
  const kernels::relu::Variant* relu_;
};

/// Convolution, bias, ReLU and max pooling by one kernel each way. Saves one code per window, not the convolution's
/// output.
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
  std::size_t partial_sum_bytes() const override {
    return variant_.partial_sum_bytes ? variant_.partial_sum_bytes(geometry_) : 0;
  }
  bool reads(DType x_dtype) const override { return variant_.reads && variant_.reads(geometry_, dtype_, x_dtype); }
  std::string description() const override { return "conv_relu_pool/" + std::string(variant_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    variant_.forward(stream, {.geometry = geometry_for(pass.batch),
                              .dtype = dtype_,
                              .x = pass.x,
                              .w = pass.parameters[0],
                              .b = pass.parameters[1],
                              .y = pass.y,
                              .codes = reinterpret_cast<std::uint8_t*>(pass.saved),
                              .workspace = pass.workspace,
                              .x_dtype = pass.x_dtype});
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
                               .workspace = pass.workspace,
                               .partial_sums = pass.partial_sums.list,
                               .partial_sum_memory = pass.partial_sums.memory,
                               .x_dtype = pass.x_dtype,
                               .branch = pass.partial_sums.branch});
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

/// Whether the first three nodes are convolution, ReLU and a max pooling that the fused kernel computes.
bool fits_conv_relu_pool(std::span<const NodeSpec> nodes) {
  if (nodes.size() < ConvReluPoolPlan::kNodes || !std::holds_alternative<Conv2d>(nodes[0].layer) ||
      !std::holds_alternative<Relu>(nodes[1].layer))
    return false;
  const auto& conv = std::get<Conv2d>(nodes[0].layer);
  if (!conv.bias || conv.groups > 1) return false;
  if (nodes[0].backward != Backward::none && !wants_every_gradient(nodes[0])) return false;  // it computes all of them
  const auto* pool = std::get_if<MaxPool2d>(&nodes[2].layer);
  return pool && pool->padding == 0 && pool->stride == pool->window &&
         pool->window <= kernels::conv_relu_pool::kMostWindow;
}

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
          .padding = layer.padding,
          .groups = layer.groups};
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Conv2d& layer, std::span<const NodeSpec> nodes) const {
  const NodeSpec& node = nodes.front();
  const bool grouped = layer.groups > 1;
  return std::make_unique<ConvolutionPlan>(
      grouped ? "grouped_conv2d" : "conv2d", node,
      grouped ? pick_variant(kernels_.grouped_conv2d, device_, node.dtype)
              : choose_variant(kernels_.conv2d, conv_.plain, device_, node.dtype),
      pick_variant(kernels_.bias, device_, node.dtype),
      has_relu(nodes) ? &pick_variant(kernels_.relu, device_, node.dtype) : nullptr);
}

std::unique_ptr<Plan> KernelPlans::plan_fused(std::span<const NodeSpec> nodes) const {
  if (conv_.fused.empty() || kernels_.conv_relu_pool.empty() || !fits_conv_relu_pool(nodes)) return nullptr;
  return std::make_unique<ConvReluPoolPlan>(
      nodes, choose_variant(kernels_.conv_relu_pool, conv_.fused, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
