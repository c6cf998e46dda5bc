// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/library_plan.h"

namespace gradring::nn {
namespace {

using kernels::DType;

/// Our row-major [rows, columns] is cuBLAS's column-major [columns, rows]:
/// forward y^T [out, n] = w^T' x^T; dgrad dx^T [in, n] = w^T dy^T; wgrad dw^T [in, out] = x^T dy^T'.
struct Products : LibraryPasses<CublasLtMatmul> {
  bool wgrad_sums = false;  ///< wgrad computes db, too
};

class CublasLtLinearPlan final : public LibraryPlan<Products> {
 public:
  CublasLtLinearPlan(std::span<const NodeSpec> nodes, std::shared_ptr<CublasLt> cublas, const HelperKernels& helpers)
      : LibraryPlan(nodes, helpers, {.library_computes = "cuBLASLt computes this layer", .option = "--gemm"}),
        layer_(std::get<Linear>(node_.layer)),
        cublas_(std::move(cublas)) {}

  std::size_t workspace_bytes() const override { return CublasLtMatmul::kWorkspaceBytes; }
  std::string description() const override { return "cublaslt"; }

  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    const Products& products = passes_for(pass.batch);
    products.forward->enqueue(stream, {.a = pass.parameters[0],
                                       .b = pass.x,
                                       .d = pass.y,
                                       .bias = bias_ ? pass.parameters[1] : nullptr,
                                       .workspace = pass.workspace});
    enqueue_after_forward(stream, pass, products.adds_bias);
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    const Products& products = passes_for(pass.batch);
    enqueue_before_backward(stream, pass, products.wgrad_sums);
    if (pass.gradients[0])
      products.wgrad->enqueue(stream, {.a = pass.x,
                                       .b = pass.dy,
                                       .d = pass.gradients[0],
                                       .bias = bias_ ? pass.gradients[1] : nullptr,
                                       .workspace = pass.workspace});
    if (pass.dx)
      products.dgrad->enqueue(
          stream, {.a = pass.parameters[0], .b = pass.dy, .d = pass.dx, .bias = nullptr, .workspace = pass.workspace});
  }

 private:
  MatmulSpec forward_spec(std::int64_t batch, Epilogue epilogue) const {
    return {.m = layer_.out_features,
            .n = batch,
            .k = layer_.in_features,
            .transpose_a = true,
            .dtype = node_.dtype,
            .d_dtype = node_.dtype,
            .epilogue = epilogue};
  }
  MatmulSpec dgrad_spec(std::int64_t batch) const {
    return {
        .m = layer_.in_features, .n = batch, .k = layer_.out_features, .dtype = node_.dtype, .d_dtype = node_.dtype};
  }
  MatmulSpec wgrad_spec(std::int64_t batch, Epilogue epilogue) const {
    return {.m = layer_.in_features,
            .n = layer_.out_features,
            .k = batch,
            .transpose_b = true,
            .dtype = node_.dtype,
            .d_dtype = DType::f32,
            .epilogue = epilogue};
  }

  Products choose(std::int64_t batch) override {
    Products products;
    if (bias_) products.forward = CublasLtMatmul::make(cublas_, forward_spec(batch, Epilogue::bias));
    products.adds_bias = products.forward.has_value();
    if (!products.forward) products.forward = CublasLtMatmul::make(cublas_, forward_spec(batch, Epilogue::none));
    if (wants_dx(node_.backward)) products.dgrad = CublasLtMatmul::make(cublas_, dgrad_spec(batch));
    if (!wants_parameters(node_.backward)) return products;
    if (bias_ && wants_every_gradient(node_))
      products.wgrad = CublasLtMatmul::make(cublas_, wgrad_spec(batch, Epilogue::sum_b));
    products.wgrad_sums = products.wgrad.has_value();
    if (!products.wgrad) products.wgrad = CublasLtMatmul::make(cublas_, wgrad_spec(batch, Epilogue::none));
    return products;
  }

  Linear layer_;
  std::shared_ptr<CublasLt> cublas_;  // one handle, shared with other plans
};

}  // namespace

std::unique_ptr<Plan> plan_cublaslt_linear(std::span<const NodeSpec> nodes, std::shared_ptr<CublasLt> cublas,
                                           const HelperKernels& helpers) {
  auto plan = std::make_unique<CublasLtLinearPlan>(nodes, std::move(cublas), helpers);
  return plan->complete() ? std::move(plan) : nullptr;
}

}  // namespace gradring::nn
