// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "nn/backend/cuda/cudnn.h"
#include "nn/backend/cuda/library_plan.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::conv2d::Geometry;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

struct Engines : LibraryPasses<CudnnEngine> {
  DType dw_dtype = DType::f32;

  std::size_t workspace_bytes() const {
    std::size_t most = 0;
    for (const auto* engine : {&forward, &dgrad, &wgrad})
      if (*engine) most = std::max(most, (*engine)->workspace_bytes);
    return most;
  }
};

/// Names of engines by pass; as text, one line each, sent from one rank to the others. Every rank asks once per plan.
struct Names {
  std::map<ConvPass, std::string> of;

  static constexpr ConvPass kPasses[] = {ConvPass::forward_bias, ConvPass::forward, ConvPass::dgrad, ConvPass::wgrad};
  std::string text() {
    std::string lines;
    for (const ConvPass pass : kPasses) lines += of[pass] + "\n";
    return lines;
  }
  static Names parse(const std::string& text) {
    Names names;
    std::istringstream lines(text);
    for (const ConvPass pass : kPasses) std::getline(lines, names.of[pass]);
    return names;
  }
};

class CudnnConv2dPlan final : public LibraryPlan<Engines> {
 public:
  CudnnConv2dPlan(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn, const HelperKernels& helpers)
      : LibraryPlan(nodes, helpers, {.library_computes = "cuDNN computes this convolution", .option = "--conv"}),
        geometry_(conv2d_geometry(node_)),
        cudnn_(std::move(cudnn)) {
    if (cudnn_->autotunes()) preferred_ = Names::parse(cudnn_->share([this] { return tune().text(); }));
    most_workspace_ = passes_for(geometry_.batch).workspace_bytes();  // a smaller batch uses that, too
  }

  std::size_t workspace_bytes() const override { return aligned(most_workspace_) + dw_bytes(); }
  std::string description() const override { return "cudnn"; }

  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    const Engines& engines = passes_for(pass.batch);
    std::vector<CudnnPointer> tensors = {{kTensorX, pass.x}, {kTensorW, pass.parameters[0]}, {kTensorY, pass.y}};
    if (engines.adds_bias) tensors.push_back({kTensorB, pass.parameters[1]});
    cudnn_->enqueue(stream, *engines.forward, tensors, pass.workspace);
    enqueue_after_forward(stream, pass, engines.adds_bias);
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    const Engines& engines = passes_for(pass.batch);
    enqueue_before_backward(stream, pass, false);
    if (pass.gradients[0]) enqueue_wgrad(stream, engines, pass);
    if (pass.dx)
      cudnn_->enqueue(stream, *engines.dgrad,
                      {{kTensorY, pass.dy}, {kTensorW, pass.parameters[0]}, {kTensorX, pass.dx}}, pass.workspace);
  }

 private:
  void enqueue_wgrad(kernels::Stream& stream, const Engines& engines, const BackwardPass& pass) {
    const bool direct = engines.dw_dtype == DType::f32;
    void* const dw = direct ? static_cast<void*>(pass.gradients[0]) : pass.workspace + aligned(most_workspace_);
    cudnn_->enqueue(stream, *engines.wgrad, {{kTensorX, pass.x}, {kTensorY, pass.dy}, {kTensorW, dw}}, pass.workspace);
    if (!direct)
      helpers_.cast.run(stream, {.from = engines.dw_dtype,
                                 .to = DType::f32,
                                 .x = dw,
                                 .y = pass.gradients[0],
                                 .elements = static_cast<std::size_t>(geometry_.weight_elements())});
  }

  /// For dw before its conversion to f32; a smaller batch may need it though the largest does not.
  std::size_t dw_bytes() const {
    return node_.dtype == DType::f32 || !wants_parameters(node_.backward)
               ? 0
               : static_cast<std::size_t>(geometry_.weight_elements()) * kernels::size_of(node_.dtype);
  }

  ConvProblem problem(ConvPass pass, const Geometry& geometry, DType dw_dtype) const {
    return {.pass = pass, .geometry = geometry, .dtype = node_.dtype, .dw_dtype = dw_dtype};
  }

  Engines choose(std::int64_t batch) override {
    Geometry geometry = geometry_;
    geometry.batch = batch;
    const auto find = [&](ConvPass pass, DType dw_dtype = DType::f32) {
      return cudnn_->choose(problem(pass, geometry, dw_dtype), most_workspace_, preferred_.of[pass]);
    };
    Engines engines;
    if (bias_) engines.forward = find(ConvPass::forward_bias);
    engines.adds_bias = engines.forward.has_value();
    if (!engines.forward) engines.forward = find(ConvPass::forward);
    if (wants_dx(node_.backward)) engines.dgrad = find(ConvPass::dgrad);
    if (!wants_parameters(node_.backward)) return engines;
    engines.wgrad = find(ConvPass::wgrad);
    if (!engines.wgrad && node_.dtype != DType::f32) {
      engines.dw_dtype = node_.dtype;
      engines.wgrad = find(ConvPass::wgrad, node_.dtype);
    }
    return engines;
  }

  /// The fastest engines for the full batch, also used for smaller ones.
  Names tune() {
    const auto fastest = [&](ConvPass pass, DType dw_dtype = DType::f32) {
      return cudnn_->tune(problem(pass, geometry_, dw_dtype), most_workspace_);
    };
    Names names;
    if (bias_) names.of[ConvPass::forward_bias] = fastest(ConvPass::forward_bias);
    if (names.of[ConvPass::forward_bias].empty()) names.of[ConvPass::forward] = fastest(ConvPass::forward);
    if (wants_dx(node_.backward)) names.of[ConvPass::dgrad] = fastest(ConvPass::dgrad);
    if (!wants_parameters(node_.backward)) return names;
    names.of[ConvPass::wgrad] = fastest(ConvPass::wgrad);
    if (names.of[ConvPass::wgrad].empty() && node_.dtype != DType::f32)
      names.of[ConvPass::wgrad] = fastest(ConvPass::wgrad, node_.dtype);
    return names;
  }

  Geometry geometry_;
  std::shared_ptr<Cudnn> cudnn_;  // one handle, shared with other plans
  std::size_t most_workspace_ = kMostCudnnWorkspaceBytes;
  Names preferred_;  // empty without autotune
};

/// Executes one problem on `tensors`; empty if there is no engine.
EnqueuedPass one_pass(const std::shared_ptr<Cudnn>& cudnn, kernels::Device& device, const ConvProblem& problem,
                      const std::vector<CudnnPointer>& tensors) {
  auto engine = cudnn->choose(problem, kMostCudnnWorkspaceBytes, cudnn->tune(problem, kMostCudnnWorkspaceBytes));
  if (!engine) return {};
  const auto workspace = std::make_shared<kernels::Buffer>(device.allocate(engine->workspace_bytes));
  const auto shared = std::make_shared<CudnnEngine>(std::move(*engine));
  return [cudnn, shared, workspace, tensors](kernels::Stream& stream) {
    cudnn->enqueue(stream, *shared, tensors, workspace->data());
  };
}

}  // namespace

std::shared_ptr<Cudnn> open_cudnn(kernels::Device& device, const CudaBackendOptions& options) {
  return std::make_shared<Cudnn>(CudnnApi::load(), device, options);
}

std::unique_ptr<Plan> plan_cudnn_conv2d(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn,
                                        const HelperKernels& helpers) {
  auto plan = std::make_unique<CudnnConv2dPlan>(nodes, std::move(cudnn), helpers);
  return plan->complete() ? std::move(plan) : nullptr;
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device,
                        const kernels::conv2d::ForwardArgs& args) {
  return one_pass(cudnn, device, {.pass = ConvPass::forward, .geometry = args.geometry, .dtype = args.dtype},
                  {{kTensorX, args.x}, {kTensorW, args.w}, {kTensorY, args.y}});
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::DgradArgs& args) {
  return one_pass(cudnn, device, {.pass = ConvPass::dgrad, .geometry = args.geometry, .dtype = args.dtype},
                  {{kTensorY, args.dy}, {kTensorW, args.w}, {kTensorX, args.dx}});
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::WgradArgs& args) {
  return one_pass(cudnn, device, {.pass = ConvPass::wgrad, .geometry = args.geometry, .dtype = args.dtype},
                  {{kTensorX, args.x}, {kTensorY, args.dy}, {kTensorW, args.dw}});
}

}  // namespace gradring::nn
