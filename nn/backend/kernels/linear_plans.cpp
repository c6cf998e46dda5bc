// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/kernels/layer_plans.h"

namespace gradring::nn {
namespace {

using kernels::Stream;

class LinearPlan final : public Plan {
 public:
  LinearPlan(const NodeSpec& node, const kernels::gemm::Variant& gemm, const kernels::bias::Variant& bias)
      : dtype_(node.dtype), layer_(std::get<Linear>(node.layer)), gemm_(gemm), bias_(bias) {}

  std::size_t nodes() const override { return 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return gemm_.workspace_bytes; }
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
                       .workspace = pass.workspace});
    bias_.add(stream, {.dtype = dtype_,
                       .rows = pass.batch,
                       .channels = layer_.out_features,
                       .x = pass.y,
                       .bias = pass.parameters[1],
                       .y = pass.y});
  }

  void enqueue_backward(Stream& stream, const BackwardPass& pass) override {
    bias_.grad(
        stream,
        {.dtype = dtype_, .rows = pass.batch, .channels = layer_.out_features, .dy = pass.dy, .db = pass.gradients[1]});
    gemm_.run(stream, {.dtype = dtype_,  // dw [out, in] = dy^T * x, dy [n, out]
                       .c_dtype = kernels::DType::f32,
                       .m = layer_.out_features,
                       .n = layer_.in_features,
                       .k = pass.batch,
                       .transpose_a = true,
                       .a = pass.dy,
                       .b = pass.x,
                       .c = pass.gradients[0],
                       .workspace = pass.workspace});
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
  kernels::DType dtype_;
  Linear layer_;
  kernels::gemm::Variant gemm_;
  kernels::bias::Variant bias_;
};

class CrossEntropyPlan final : public LossPlan {
 public:
  CrossEntropyPlan(const CrossEntropySpec& spec, const kernels::softmax_cross_entropy::Variant& kernel)
      : spec_(spec), kernel_(kernel) {}

  std::size_t nodes() const override { return 0; }
  std::size_t workspace_bytes() const override { return kernels::softmax_cross_entropy::workspace_bytes(spec_.rows); }
  std::string description() const override { return "softmax_cross_entropy/" + std::string(kernel_.name); }

  void enqueue(Stream& stream, const LossPass& pass) override {
    kernel_.run(stream, {.dtype = spec_.dtype,
                         .rows = pass.rows,
                         .classes = spec_.classes,
                         .logits = pass.x,
                         .labels = pass.labels,
                         .scale = pass.scale,
                         .loss_scale = pass.loss_scale,
                         .dlogits = pass.dx,
                         .loss_sum = pass.loss_sum,
                         .correct = pass.correct,
                         .workspace = pass.workspace});
  }

 private:
  CrossEntropySpec spec_;
  kernels::softmax_cross_entropy::Variant kernel_;
};

class LinearCrossEntropyPlan final : public LossPlan {
 public:
  LinearCrossEntropyPlan(const CrossEntropySpec& spec, const NodeSpec& last,
                         const kernels::linear_cross_entropy::Variant& kernel)
      : spec_(spec), layer_(std::get<Linear>(last.layer)), kernel_(kernel) {}

  std::size_t nodes() const override { return 1; }
  std::size_t workspace_bytes() const override {
    return kernels::linear_cross_entropy::workspace_bytes(spec_.rows, spec_.classes);
  }
  std::string description() const override { return "linear_cross_entropy/" + std::string(kernel_.name); }

  void enqueue(Stream& stream, const LossPass& pass) override {
    const bool trains = pass.dx != nullptr;
    kernel_.run(stream, {.dtype = spec_.dtype,
                         .rows = pass.rows,
                         .in = layer_.in_features,
                         .classes = spec_.classes,
                         .h = pass.x,
                         .w = pass.parameters[0],
                         .b = pass.parameters[1],
                         .labels = pass.labels,
                         .scale = pass.scale,
                         .loss_scale = pass.loss_scale,
                         .logits = pass.logits,
                         .dh = pass.dx,
                         .dw = trains ? pass.gradients[0] : nullptr,
                         .db = trains ? pass.gradients[1] : nullptr,
                         .loss_sum = pass.loss_sum,
                         .correct = pass.correct,
                         .workspace = pass.workspace});
  }

 private:
  CrossEntropySpec spec_;
  Linear layer_;
  kernels::linear_cross_entropy::Variant kernel_;
};

}  // namespace

std::unique_ptr<Plan> make_linear_plan(const NodeSpec& node, const kernels::gemm::Variant& gemm,
                                       const kernels::bias::Variant& bias) {
  return std::make_unique<LinearPlan>(node, gemm, bias);
}

std::unique_ptr<LossPlan> make_cross_entropy_plan(const CrossEntropySpec& spec,
                                                  const kernels::softmax_cross_entropy::Variant& kernel) {
  return std::make_unique<CrossEntropyPlan>(spec, kernel);
}

bool fits_linear_cross_entropy(const CrossEntropySpec& spec, const NodeSpec& last) {
  return std::holds_alternative<Linear>(last.layer) && last.dtype == spec.dtype &&
         spec.classes <= kernels::linear_cross_entropy::kMostClasses;
}

std::unique_ptr<LossPlan> make_linear_cross_entropy_plan(const CrossEntropySpec& spec, const NodeSpec& last,
                                                         const kernels::linear_cross_entropy::Variant& kernel) {
  return std::make_unique<LinearCrossEntropyPlan>(spec, last, kernel);
}

}  // namespace gradring::nn
