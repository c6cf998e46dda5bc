// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/cuda_libraries.h"

namespace gradring::nn {
namespace {

using kernels::DType;

/// The products of one batch size. Our row-major [rows, columns] is cuBLAS's column-major [columns, rows].
struct Products {
  std::optional<CublasLtMatmul> forward;  ///< y^T [out, n] = w^T' x^T, with the bias if adds_bias
  bool adds_bias = false;
  std::optional<CublasLtMatmul> dgrad;  ///< dx^T [in, n] = w^T dy^T
  std::optional<CublasLtMatmul> wgrad;  ///< dw^T [in, out] = x^T dy^T', with db if wgrad_sums
  bool wgrad_sums = false;

  bool complete(Backward backward) const {
    return forward && (wgrad || backward == Backward::none) && (dgrad || backward != Backward::all);
  }
};

class CublasLtLinearPlan final : public Plan {
 public:
  CublasLtLinearPlan(const NodeSpec& node, bool relu, std::shared_ptr<CublasLt> cublas, const HelperKernels& helpers)
      : dtype_(node.dtype),
        layer_(std::get<Linear>(node.layer)),
        batch_(node.input[0]),
        backward_(node.backward),
        relu_(relu),
        cublas_(std::move(cublas)),
        helpers_(helpers) {}

  bool complete() { return products_for(batch_).complete(backward_); }

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return CublasLtMatmul::kWorkspaceBytes; }

  std::string description() const override { return "cublaslt"; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    Products& products = products_for(pass.batch);
    const void* const bias = pass.parameters[1];
    products.forward->enqueue(
        stream, {.a = pass.parameters[0], .b = pass.x, .d = pass.y, .bias = bias, .workspace = pass.workspace});
    if (!products.adds_bias)
      helpers_.bias.add(stream, {.dtype = dtype_,
                                 .rows = pass.batch,
                                 .channels = layer_.out_features,
                                 .x = pass.y,
                                 .bias = bias,
                                 .y = pass.y});
    if (relu_)  // ours keeps a NaN; cuBLASLt does not say that its own does
      helpers_.relu.forward(stream, {.dtype = dtype_, .x = pass.y, .y = pass.y, .elements = out_elements(pass.batch)});
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    Products& products = products_for(pass.batch);
    if (relu_)
      helpers_.relu.backward(
          stream, {.dtype = dtype_, .y = pass.y, .dy = pass.dy, .dx = pass.dy, .elements = out_elements(pass.batch)});
    if (!products.wgrad_sums)
      helpers_.bias.grad(stream, {.dtype = dtype_,
                                  .rows = pass.batch,
                                  .channels = layer_.out_features,
                                  .dy = pass.dy,
                                  .db = pass.gradients[1]});
    products.wgrad->enqueue(
        stream,
        {.a = pass.x, .b = pass.dy, .d = pass.gradients[0], .bias = pass.gradients[1], .workspace = pass.workspace});
    if (pass.dx)
      products.dgrad->enqueue(
          stream, {.a = pass.parameters[0], .b = pass.dy, .d = pass.dx, .bias = nullptr, .workspace = pass.workspace});
  }

 private:
  std::size_t out_elements(std::int64_t batch) const { return static_cast<std::size_t>(batch * layer_.out_features); }

  MatmulSpec forward_spec(std::int64_t batch, Epilogue epilogue) const {
    return {.m = layer_.out_features,
            .n = batch,
            .k = layer_.in_features,
            .transpose_a = true,
            .dtype = dtype_,
            .d_dtype = dtype_,
            .epilogue = epilogue};
  }
  MatmulSpec dgrad_spec(std::int64_t batch) const {
    return {.m = layer_.in_features, .n = batch, .k = layer_.out_features, .dtype = dtype_, .d_dtype = dtype_};
  }
  MatmulSpec wgrad_spec(std::int64_t batch, Epilogue epilogue) const {
    return {.m = layer_.in_features,
            .n = layer_.out_features,
            .k = batch,
            .transpose_b = true,
            .dtype = dtype_,
            .d_dtype = DType::f32,
            .epilogue = epilogue};
  }

  /// An epoch has two batch sizes, the full one and the short last one.
  Products& products_for(std::int64_t batch) {
    const auto known = products_.find(batch);
    if (known != products_.end()) return known->second;
    Products products = choose(batch);
    check<DeviceError>(batch == batch_ || products.complete(backward_), [&] {
      return "cuBLASLt computes this layer for the full batch but not for " + std::to_string(batch) +
             " samples: name one of our variants with --gemm";
    });
    return products_.emplace(batch, std::move(products)).first->second;
  }

  Products choose(std::int64_t batch) const {
    Products products;
    products.forward = CublasLtMatmul::make(cublas_, forward_spec(batch, Epilogue::bias));
    products.adds_bias = products.forward.has_value();
    if (!products.forward) products.forward = CublasLtMatmul::make(cublas_, forward_spec(batch, Epilogue::none));
    if (backward_ == Backward::none) return products;
    if (backward_ == Backward::all) products.dgrad = CublasLtMatmul::make(cublas_, dgrad_spec(batch));
    products.wgrad = CublasLtMatmul::make(cublas_, wgrad_spec(batch, Epilogue::sum_b));
    products.wgrad_sums = products.wgrad.has_value();
    if (!products.wgrad) products.wgrad = CublasLtMatmul::make(cublas_, wgrad_spec(batch, Epilogue::none));
    return products;
  }

  DType dtype_;
  Linear layer_;
  std::int64_t batch_;
  Backward backward_;
  bool relu_;
  std::shared_ptr<CublasLt> cublas_;
  HelperKernels helpers_;
  std::map<std::int64_t, Products> products_;
};

}  // namespace

std::unique_ptr<Plan> plan_cublaslt_linear(std::span<const NodeSpec> nodes, std::shared_ptr<CublasLt> cublas,
                                           const HelperKernels& helpers) {
  const bool relu = nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
  auto plan = std::make_unique<CublasLtLinearPlan>(nodes.front(), relu, std::move(cublas), helpers);
  return plan->complete() ? std::move(plan) : nullptr;
}

}  // namespace gradring::nn
