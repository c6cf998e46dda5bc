// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cudnn_passes.h"

#include <array>
#include <utility>

#include "nn/backend/cuda/cudnn.h"

namespace gradring::nn {
namespace {

using kernels::Stream;

/// An engine for one problem, and the memory that it works in.
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
