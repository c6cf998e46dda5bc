// SPDX-License-Identifier: Apache-2.0
#include "nn/backend/cuda/cuda_peers.h"

#include <string>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::nn {
namespace {

using kernels::Stream;
using Peer = kernels::PeerMaker::Peer;
namespace crp = kernels::conv_relu_pool;

constexpr const char* kConvolution = "cudnn";
constexpr const char* kProduct = "cublaslt";
constexpr const char* kThenPool = "cudnn, then pooling";

/// Opens a library; null if it is missing, or may not be opened.
template <class Open>
auto opened(const CudaBackendOptions& options, const Open& open) -> decltype(open()) {
  if (!options.has_libraries) return nullptr;
  try {
    return open();
  } catch (const DeviceError& error) {
    options.say(std::string("no peer: ") + error.what());
    return nullptr;
  }
}

Peer named(const char* name, EnqueuedPass pass) {
  if (!pass) return std::nullopt;
  return {{name, std::move(pass)}};
}

/// Our row-major C is cuBLAS's column-major C^T = op(B)^T op(A)^T.
MatmulSpec spec_of(const kernels::gemm::Args& args) {
  return {.m = args.n,
          .n = args.m,
          .k = args.k,
          .transpose_a = args.transpose_b,
          .transpose_b = args.transpose_a,
          .dtype = args.dtype,
          .d_dtype = args.c_dtype,
          .epilogue = Epilogue::none};
}

}  // namespace

std::unique_ptr<CudaPeers> CudaPeers::open(const kernels::KernelSet& kernels, kernels::Device& device,
                                           const CudaBackendOptions& options) {
  return std::make_unique<CudaPeers>(
      kernels, device, opened(options, [&] { return open_cudnn(device, options); }),
      opened(options, [&] { return std::make_shared<CublasLt>(CublasLtApi::load(), device); }));
}

Peer CudaPeers::peer(const kernels::conv2d::ForwardArgs& args) {
  return cudnn_ ? named(kConvolution, cudnn_pass(cudnn_, device_, args)) : std::nullopt;
}

Peer CudaPeers::peer(const kernels::conv2d::DgradArgs& args) {
  return cudnn_ ? named(kConvolution, cudnn_pass(cudnn_, device_, args)) : std::nullopt;
}

Peer CudaPeers::peer(const kernels::conv2d::WgradArgs& args) {
  if (!cudnn_ || args.accumulate) return std::nullopt;
  return named(kConvolution, cudnn_pass(cudnn_, device_, args));
}

Peer CudaPeers::peer(const kernels::gemm::Args& args) {
  if (!cublas_ || args.accumulate || args.bias || args.relu || args.row_sums) return std::nullopt;
  auto product = CublasLtMatmul::make(cublas_, spec_of(args));
  if (!product) return std::nullopt;
  const auto shared = std::make_shared<CublasLtMatmul>(std::move(*product));
  const auto workspace = std::make_shared<kernels::Buffer>(device_.allocate(CublasLtMatmul::kWorkspaceBytes));
  return named(kProduct, [shared, workspace, args](Stream& stream) {
    shared->enqueue(stream, {.a = args.b, .b = args.a, .d = args.c, .workspace = workspace->data()});
  });
}

std::shared_ptr<bench::Unfused> CudaPeers::make_unfused(const crp::Geometry& geometry, kernels::DType dtype) {
  if (!cudnn_) return nullptr;
  auto plan =
      plan_cudnn_conv2d(bench::conv_relu_nodes(geometry, dtype), cudnn_, HelperKernels::pick(kernels_, device_, dtype));
  if (!plan) return nullptr;
  return std::make_shared<bench::Unfused>(
      bench::Unfused::Parts{.conv_relu = std::move(plan),
                            .pool = kernels::pick_variant(kernels_.max_pool2d, device_, dtype),
                            .device = device_},
      geometry, dtype);
}

Peer CudaPeers::peer(const crp::ForwardArgs& args) {
  const auto unfused = make_unfused(args.geometry, args.dtype);
  if (!unfused) return std::nullopt;
  return named(kThenPool, [unfused, args](Stream& stream) { unfused->enqueue_forward(stream, args); });
}

Peer CudaPeers::peer(const crp::BackwardArgs& args) {
  const auto unfused = args.accumulate ? nullptr : make_unfused(args.geometry, args.dtype);
  if (!unfused) return std::nullopt;
  return named(kThenPool, [unfused, args](Stream& stream) { unfused->enqueue_backward(stream, args); });
}

}  // namespace gradring::nn
