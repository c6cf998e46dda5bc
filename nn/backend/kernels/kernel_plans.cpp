// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/kernel_plans.h"

#include "kernels/base/error.h"
#include "nn/backend/kernels/folded_batch_norm.h"
#include "nn/backend/kernels/plan_parts.h"

namespace gradring::nn {
namespace {

using kernels::pick_variant;
using kernels::Stream;

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
    enqueue_gradients(beside(stream, pass.partial_sums.branch), pass);
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

}  // namespace

std::unique_ptr<Plan> KernelPlans::plan(std::span<const NodeSpec> nodes) const {
  return std::visit([&](const auto& layer) { return plan_of(layer, nodes); }, nodes.front().layer);
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Linear&, std::span<const NodeSpec> nodes) const {
  return std::make_unique<LinearPlan>(
      nodes[0], choose_variant(kernels_.gemm, gemm_, device_, nodes[0].dtype),
      pick_variant(kernels_.bias, device_, nodes[0].dtype),
      has_relu(nodes) ? &pick_variant(kernels_.relu, device_, nodes[0].dtype) : nullptr);
}

std::unique_ptr<Plan> KernelPlans::plan_of(const Flatten&, std::span<const NodeSpec>) const {
  throw InvalidArgument("a flatten node has no plan: programs leave it out");
}

std::unique_ptr<Plan> KernelPlans::plan_folded(std::span<const NodeSpec> nodes, std::unique_ptr<Plan> inner) const {
  return fold_batch_norm(nodes, std::move(inner), pick_variant(kernels_.batch_norm, device_, nodes[0].dtype));
}

}  // namespace gradring::nn
