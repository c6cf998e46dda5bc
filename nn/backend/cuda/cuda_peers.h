// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "kernels/ops/kernel_set.h"
#include "kernels/ops/peers.h"
#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/cuda_libraries.h"
#include "nn/backend/unfused.h"

namespace gradring::nn {

/// NVIDIA's libraries as peers of our variants in benchmarks: cuDNN for convolutions, cuBLASLt for products, as
/// CudaBackend calls them; for conv_relu_pool cuDNN with bias and ReLU, then our pooling. A missing library has no
/// peers.
///
/// Example   tests/nn/backend/cuda/cuda_peers_test.cpp
class CudaPeers final : public kernels::PeerMaker {
 public:
  /// `kernels` are those of `device`, which must outlive the peers. Either library may be missing.
  CudaPeers(const kernels::KernelSet& kernels, kernels::Device& device, std::shared_ptr<Cudnn> cudnn,
            std::shared_ptr<CublasLt> cublas)
      : kernels_(kernels), device_(device), cudnn_(std::move(cudnn)), cublas_(std::move(cublas)) {}

  /// With the libraries that load; reports the others to `options.say`. The options of choosing cuDNN's engines apply.
  static std::unique_ptr<CudaPeers> open(const kernels::KernelSet& kernels, kernels::Device& device,
                                         const CudaBackendOptions& options);

  Peer peer(const kernels::conv2d::ForwardArgs& args) override;
  Peer peer(const kernels::conv2d::DgradArgs& args) override;
  Peer peer(const kernels::conv2d::WgradArgs& args) override;
  Peer peer(const kernels::gemm::Args& args) override;
  Peer peer(const kernels::conv_relu_pool::ForwardArgs& args) override;
  Peer peer(const kernels::conv_relu_pool::BackwardArgs& args) override;

 private:
  /// Null if cuDNN has no plan.
  std::shared_ptr<bench::Unfused> make_unfused(const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

  kernels::KernelSet kernels_;
  kernels::Device& device_;
  std::shared_ptr<Cudnn> cudnn_;  // null if missing; shared with the peers, as cublas_
  std::shared_ptr<CublasLt> cublas_;
};

}  // namespace gradring::nn
