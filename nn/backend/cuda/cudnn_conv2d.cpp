// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cuda_libraries.h"

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "nn/backend/cuda/cudnn.h"
#include "nn/backend/kernels/kernel_plans.h"

namespace gradring::nn {
namespace {

using kernels::DType;
using kernels::conv2d::Geometry;

std::size_t aligned(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

/// The engines for one batch size, of the passes that will be asked for.
struct Engines {
  std::optional<CudnnEngine> forward;
  bool adds_bias = false;  ///< as part of forward
  std::optional<CudnnEngine> dgrad;
  std::optional<CudnnEngine> wgrad;
  DType dw_dtype = DType::f32;

  bool complete(Backward backward) const {
    return forward && (wgrad || backward == Backward::none) && (dgrad || backward != Backward::all);
  }
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

class CudnnConv2dPlan final : public Plan {
 public:
  CudnnConv2dPlan(const NodeSpec& node, bool relu, std::shared_ptr<Cudnn> cudnn, const HelperKernels& helpers)
      : dtype_(node.dtype),
        geometry_(conv2d_geometry(node)),
        backward_(node.backward),
        relu_(relu),
        cudnn_(std::move(cudnn)),
        helpers_(helpers) {
    if (cudnn_->autotunes()) preferred_ = Names::parse(cudnn_->share([this] { return tune().text(); }));
    const Engines& engines = engines_for(geometry_.batch);
    most_workspace_ = engines.workspace_bytes();
  }

  bool complete() { return engines_for(geometry_.batch).complete(backward_); }

  std::size_t nodes() const override { return relu_ ? 2 : 1; }
  std::size_t saved_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return aligned(most_workspace_) + dw_bytes(); }

  std::string description() const override { return "cudnn"; }
  void enqueue_forward(kernels::Stream& stream, const ForwardPass& pass) override {
    const Geometry geometry = geometry_for(pass.batch);
    const Engines& engines = engines_for(pass.batch);
    std::vector<CudnnPointer> tensors = {{kTensorX, pass.x}, {kTensorW, pass.parameters[0]}, {kTensorY, pass.y}};
    if (engines.adds_bias) tensors.push_back({kTensorB, pass.parameters[1]});
    cudnn_->enqueue(stream, *engines.forward, tensors, pass.workspace);
    if (!engines.adds_bias)
      helpers_.bias.add(stream, {.dtype = dtype_,
                                 .rows = rows(geometry),
                                 .channels = geometry.out_channels,
                                 .x = pass.y,
                                 .bias = pass.parameters[1],
                                 .y = pass.y});
    if (relu_)  // ours keeps a NaN; cuDNN does not say that its own does
      helpers_.relu.forward(stream, {.dtype = dtype_, .x = pass.y, .y = pass.y, .elements = out_elements(geometry)});
  }

  void enqueue_backward(kernels::Stream& stream, const BackwardPass& pass) override {
    const Geometry geometry = geometry_for(pass.batch);
    const Engines& engines = engines_for(pass.batch);
    if (relu_)
      helpers_.relu.backward(
          stream, {.dtype = dtype_, .y = pass.y, .dy = pass.dy, .dx = pass.dy, .elements = out_elements(geometry)});
    helpers_.bias.grad(stream, {.dtype = dtype_,
                                .rows = rows(geometry),
                                .channels = geometry.out_channels,
                                .dy = pass.dy,
                                .db = pass.gradients[1]});
    enqueue_wgrad(stream, engines, pass);
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

  Geometry geometry_for(std::int64_t batch) const {
    Geometry geometry = geometry_;
    geometry.batch = batch;
    return geometry;
  }
  static std::int64_t rows(const Geometry& geometry) {
    return geometry.batch * geometry.out_height() * geometry.out_width();
  }
  static std::size_t out_elements(const Geometry& geometry) {
    return static_cast<std::size_t>(geometry.out_elements());
  }
  /// For dw before its conversion to f32; a smaller batch may need it though the largest does not.
  std::size_t dw_bytes() const {
    return dtype_ == DType::f32 || backward_ == Backward::none
               ? 0
               : static_cast<std::size_t>(geometry_.weight_elements()) * kernels::size_of(dtype_);
  }

  /// An epoch has two batch sizes, the full one and the short last one, which uses the workspace of the first.
  const Engines& engines_for(std::int64_t batch) {
    const auto known = engines_.find(batch);
    if (known != engines_.end()) return known->second;
    Engines engines = choose(geometry_for(batch));
    check<DeviceError>(batch == geometry_.batch || engines.complete(backward_), [&] {
      return "cuDNN computes this convolution for the full batch but not for " + std::to_string(batch) +
             " samples: name one of our variants with --conv";
    });
    return engines_.emplace(batch, std::move(engines)).first->second;
  }

  ConvProblem problem(ConvPass pass, const Geometry& geometry, DType dw_dtype) const {
    return {.pass = pass, .geometry = geometry, .dtype = dtype_, .dw_dtype = dw_dtype};
  }

  Engines choose(const Geometry& geometry) {
    const auto find = [&](ConvPass pass, DType dw_dtype = DType::f32) {
      return cudnn_->choose(problem(pass, geometry, dw_dtype), most_workspace_, preferred_.of[pass]);
    };
    Engines engines;
    engines.forward = find(ConvPass::forward_bias);
    engines.adds_bias = engines.forward.has_value();
    if (!engines.forward) engines.forward = find(ConvPass::forward);
    if (backward_ == Backward::none) return engines;
    if (backward_ == Backward::all) engines.dgrad = find(ConvPass::dgrad);
    engines.wgrad = find(ConvPass::wgrad);
    if (!engines.wgrad && dtype_ != DType::f32) {
      engines.dw_dtype = dtype_;
      engines.wgrad = find(ConvPass::wgrad, dtype_);
    }
    return engines;
  }

  /// The fastest engines for the full batch, also used for smaller ones.
  Names tune() {
    const auto fastest = [&](ConvPass pass, DType dw_dtype = DType::f32) {
      return cudnn_->tune(problem(pass, geometry_, dw_dtype), most_workspace_);
    };
    Names names;
    names.of[ConvPass::forward_bias] = fastest(ConvPass::forward_bias);
    if (names.of[ConvPass::forward_bias].empty()) names.of[ConvPass::forward] = fastest(ConvPass::forward);
    if (backward_ == Backward::none) return names;
    if (backward_ == Backward::all) names.of[ConvPass::dgrad] = fastest(ConvPass::dgrad);
    names.of[ConvPass::wgrad] = fastest(ConvPass::wgrad);
    if (names.of[ConvPass::wgrad].empty() && dtype_ != DType::f32)
      names.of[ConvPass::wgrad] = fastest(ConvPass::wgrad, dtype_);
    return names;
  }

  DType dtype_;
  Geometry geometry_;
  Backward backward_;
  bool relu_;
  std::shared_ptr<Cudnn> cudnn_;  // one handle, shared with other plans
  HelperKernels helpers_;
  std::size_t most_workspace_ = kMostCudnnWorkspaceBytes;
  Names preferred_;  // empty without autotune
  std::map<std::int64_t, Engines> engines_;
};

using kernels::Stream;

/// An engine for one problem and its workspace.
struct OnePass {
  std::shared_ptr<Cudnn> cudnn;
  CudnnEngine engine;
  kernels::Buffer workspace;

  void enqueue(Stream& stream, const std::array<CudnnPointer, 3>& tensors) {
    cudnn->enqueue(stream, engine, {tensors[0], tensors[1], tensors[2]}, workspace.data());
  }
};

/// Null if there is no engine.
std::shared_ptr<OnePass> one_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const ConvProblem& problem) {
  auto engine = cudnn->choose(problem, kMostCudnnWorkspaceBytes, cudnn->tune(problem, kMostCudnnWorkspaceBytes));
  if (!engine) return nullptr;
  kernels::Buffer workspace = device.allocate(engine->workspace_bytes);
  return std::make_shared<OnePass>(OnePass{std::move(cudnn), std::move(*engine), std::move(workspace)});
}

EnqueuedPass bound(std::shared_ptr<OnePass> pass, const std::array<CudnnPointer, 3>& tensors) {
  if (!pass) return {};
  return [pass = std::move(pass), tensors](Stream& stream) { pass->enqueue(stream, tensors); };
}

}  // namespace

std::shared_ptr<Cudnn> open_cudnn(kernels::Device& device, const CudaBackendOptions& options) {
  return std::make_shared<Cudnn>(CudnnApi::load(), device, options);
}

std::unique_ptr<Plan> plan_cudnn_conv2d(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn,
                                        const HelperKernels& helpers) {
  const bool relu = nodes.size() > 1 && std::holds_alternative<Relu>(nodes[1].layer);
  auto plan = std::make_unique<CudnnConv2dPlan>(nodes.front(), relu, std::move(cudnn), helpers);
  return plan->complete() ? std::move(plan) : nullptr;
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device,
                        const kernels::conv2d::ForwardArgs& args) {
  const ConvProblem problem{.pass = ConvPass::forward, .geometry = args.geometry, .dtype = args.dtype};
  return bound(one_pass(std::move(cudnn), device, problem),
               {{{kTensorX, args.x}, {kTensorW, args.w}, {kTensorY, args.y}}});
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::DgradArgs& args) {
  const ConvProblem problem{.pass = ConvPass::dgrad, .geometry = args.geometry, .dtype = args.dtype};
  return bound(one_pass(std::move(cudnn), device, problem),
               {{{kTensorY, args.dy}, {kTensorW, args.w}, {kTensorX, args.dx}}});
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::WgradArgs& args) {
  const ConvProblem problem{.pass = ConvPass::wgrad, .geometry = args.geometry, .dtype = args.dtype};
  return bound(one_pass(std::move(cudnn), device, problem),
               {{{kTensorX, args.x}, {kTensorY, args.dy}, {kTensorW, args.dw}}});
}

}  // namespace gradring::nn
