// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "nn/backend/kernels/folded_batch_norm.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::pick_variant;
using kernels::Stream;

/// The scratch memory of a layer's backward pass: `first` bytes, then the bias gradient's. Both may hold partial sums.
struct ScratchWithBias {
  std::size_t first;
  std::int64_t channels;

  std::size_t offset() const { return (first + 63) / 64 * 64; }
  std::size_t bytes() const { return offset() + kernels::bias::grad_workspace_bytes(channels); }
  /// The gradient of the bias, db, if it is wanted.
  void enqueue_bias(Stream& stream, const kernels::bias::Variant& bias, const BackwardPass& pass, DType dtype,
                    std::int64_t rows) const {
    if (pass.gradients.size() < 2 || !pass.gradients[1]) return;
    bias.grad(stream, {.dtype = dtype,
                       .rows = rows,
                       .channels = channels,
                       .dy = pass.dy,
                       .db = pass.gradients[1],
                       .workspace = pass.partial_sums.workspace_or(pass.workspace) + offset(),
                       .partial_sums = pass.partial_sums.list});
  }
};

/// Convolution, then bias if it has one, by two kernels each way.
class ConvolutionPlan final : public Plan {
 public:
  ConvolutionPlan(std::string_view op, const NodeSpec& node, const kernels::conv2d::Variant& conv,
                  const kernels::bias::Variant& bias)
      : op_(op), dtype_(node.dtype), geometry_(conv2d_geometry(node)), conv_(conv), bias_(bias) {}

  std::size_t workspace_bytes() const override { return scratch().bytes(); }
  std::size_t partial_sum_bytes() const override { return workspace_bytes(); }
  std::string description() const override { return op_ + "/" + std::string(conv_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    const auto geometry = with_batch(geometry_, pass.batch);
    conv_.forward(stream, {.geometry = geometry, .dtype = dtype_, .x = pass.x, .w = pass.parameters[0], .y = pass.y});
    if (pass.parameters.size() == 1) return;
    bias_.add(stream, {.dtype = dtype_,
                       .rows = rows(geometry),
                       .channels = geometry.out_channels,
                       .x = pass.y,
                       .bias = pass.parameters[1],
                       .y = pass.y});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    const auto geometry = with_batch(geometry_, pass.batch);
    scratch().enqueue_bias(stream, bias_, pass, dtype_, rows(geometry));
    if (pass.gradients[0])
      conv_.wgrad(stream, {.geometry = geometry,
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
  static std::int64_t rows(const kernels::conv2d::Geometry& geometry) {
    return geometry.batch * geometry.out_height() * geometry.out_width();
  }
  ScratchWithBias scratch() const { return {conv_.workspace_bytes(geometry_), geometry_.out_channels}; }

  std::string op_;
  DType dtype_;
  kernels::conv2d::Geometry geometry_;
  kernels::conv2d::Variant conv_;
  kernels::bias::Variant bias_;
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
  std::size_t partial_sum_bytes() const override { return workspace_bytes(); }
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
                               .workspace = pass.partial_sums.workspace_or(pass.workspace),
                               .partial_sums = pass.partial_sums.list,
                               .x_dtype = pass.x_dtype});
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

/// y = x w^T [+ b], with a ReLU after it if that is the next node: one matrix product. Backward is two products, of
/// which the first also gives the gradient of the bias where the variant can.
class LinearPlan final : public Plan {
 public:
  /// `relu`: null without one.
  LinearPlan(const NodeSpec& node, const kernels::gemm::Variant& gemm, const kernels::bias::Variant& bias,
             const kernels::relu::Variant* relu)
      : dtype_(node.dtype), layer_(std::get<Linear>(node.layer)), gemm_(gemm), bias_(bias), relu_(relu) {}

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t workspace_bytes() const override { return scratch().bytes(); }
  std::size_t partial_sum_bytes() const override { return workspace_bytes(); }
  std::string description() const override { return "gemm/" + std::string(gemm_.name); }

  void enqueue_forward(Stream& stream, const ForwardPass& pass) override {
    gemm_.run(stream, {.dtype = dtype_,  // y [n, out] = x [n, in] * w^T, w [out, in]
                       .c_dtype = dtype_,
                       .m = pass.batch,
                       .n = layer_.out_features,
                       .k = layer_.in_features,
                       .transpose_b = true,
                       .a = pass.x,
                       .b = pass.parameters[0],
                       .c = pass.y,
                       .bias = pass.parameters.size() > 1 ? pass.parameters[1] : nullptr,
                       .relu = relu_ != nullptr,
                       .workspace = pass.workspace});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    if (relu_ && !pass.dy_is_masked)
      relu_->backward(stream, {.dtype = dtype_,
                               .y = pass.y,
                               .dy = pass.dy,
                               .dx = pass.dy,
                               .elements = static_cast<std::size_t>(pass.batch * layer_.out_features)});
    enqueue_gradients(stream, pass);
    if (!pass.dx) return;
    gemm_.run(stream, {.dtype = dtype_,  // dx [n, in] = dy * w
                       .c_dtype = dtype_,
                       .m = pass.batch,
                       .n = layer_.in_features,
                       .k = layer_.out_features,
                       .a = pass.dy,
                       .b = pass.parameters[0],
                       .c = pass.dx,
                       .workspace = pass.workspace});
  }

 private:
  void enqueue_gradients(Stream& stream, const BackwardPass& pass) const {
    kernels::gemm::Args product{.dtype = dtype_,  // dw [out, in] = dy^T * x, dy [n, out]
                                .c_dtype = kernels::DType::f32,
                                .m = layer_.out_features,
                                .n = layer_.in_features,
                                .k = pass.batch,
                                .transpose_a = true,
                                .a = pass.dy,
                                .b = pass.x,
                                .c = pass.gradients[0],
                                .workspace = pass.partial_sums.workspace_or(pass.workspace),
                                .partial_sums = pass.partial_sums.list};
    float* const db = pass.gradients.size() > 1 ? pass.gradients[1] : nullptr;
    if (db && product.c && gemm_.sums_rows && gemm_.sums_rows(product))
      product.row_sums = db;
    else
      scratch().enqueue_bias(stream, bias_, pass, dtype_, pass.batch);
    if (product.c) gemm_.run(stream, product);
  }
  ScratchWithBias scratch() const { return {gemm_.workspace_bytes, layer_.out_features}; }

  kernels::DType dtype_;
  Linear layer_;
  kernels::gemm::Variant gemm_;
  kernels::bias::Variant bias_;
  const kernels::relu::Variant* relu_;
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

/// The variant of that name, or the best one for auto.
template <class Variant>
const Variant& choose(std::span<const Variant> table, const std::string& name, const kernels::Device& device,
                      kernels::DType dtype) {
  if (name == kAuto) return pick_variant(table, device, dtype);
  const Variant& named = kernels::find_variant(table, name);
  if (kernels::can_run(named, device, dtype)) return named;
  throw InvalidArgument("variant '" + name + "' does not support " + std::string(kernels::name_of(dtype)) + " on " +
                        device.id().to_string() + ": name another, or auto");
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

std::unique_ptr<Plan> KernelPlans::plan(std::span<const NodeSpec> nodes) const {
  return std::visit([&](const auto& layer) { return plan_of(layer, nodes); }, nodes.front().layer);
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Conv2d& layer, std::span<const NodeSpec> nodes) const {
  const NodeSpec& node = nodes.front();
  const kernels::bias::Variant& bias = pick_variant(kernels_.bias, device_, node.dtype);
  if (layer.groups > 1)
    return std::make_unique<ConvolutionPlan>("grouped_conv2d", node,
                                             pick_variant(kernels_.grouped_conv2d, device_, node.dtype), bias);
  return std::make_unique<ConvolutionPlan>("conv2d", node, choose(kernels_.conv2d, conv_.plain, device_, node.dtype),
                                           bias);
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Linear&, std::span<const NodeSpec> nodes) const {
  const bool with_relu = nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
  return std::make_unique<LinearPlan>(nodes[0], choose(kernels_.gemm, gemm_, device_, nodes[0].dtype),
                                      pick_variant(kernels_.bias, device_, nodes[0].dtype),
                                      with_relu ? &pick_variant(kernels_.relu, device_, nodes[0].dtype) : nullptr);
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Flatten&, std::span<const NodeSpec>) const {
  throw InvalidArgument("a flatten node has no plan: programs leave it out");
}

std::unique_ptr<Plan> KernelPlans::plan_folded(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner) const {
  return fold_batch_norm(nodes, std::move(inner), pick_variant(kernels_.batch_norm, device_, nodes[0].dtype));
}

std::unique_ptr<Plan> KernelPlans::plan_fused(std::span<const NodeSpec> nodes) const {
  if (conv_.fused.empty() || kernels_.conv_relu_pool.empty() || !fits_conv_relu_pool(nodes)) return nullptr;
  return std::make_unique<ConvReluPoolPlan>(nodes,
                                            choose(kernels_.conv_relu_pool, conv_.fused, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
