// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "kernels/bench/peer_maker.h"
#include "kernels/kernel_set.h"
#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/cudnn_conv2d.h"
#include "nn/bench/unfused.h"

namespace gradring::nn {

/// NVIDIA's libraries beside our variants: cuDNN for convolutions, cuBLASLt for products, as CudaBackend calls them; and for
/// conv_relu_pool cuDNN with bias and ReLU, then our pooling. A library that is not there has no peers.
///
/// Example   tests/nn/backend/cuda/cuda_peers_test.cpp
class CudaPeers final : public kernels::bench::PeerMaker {
 public:
  /// `kernels` are those of `device`, which must outlive the peers. Either library may be missing.
  CudaPeers(const kernels::KernelSet& kernels, kernels::Device& device, std::shared_ptr<Cudnn> cudnn,
            std::shared_ptr<CublasLt> cublas)
      : kernels_(kernels), device_(device), cudnn_(std::move(cudnn)), cublas_(std::move(cublas)) {}

  /// With the libraries that are here; `options.say` hears of those that are not. How cuDNN chooses its engines counts, too.
  static std::unique_ptr<CudaPeers> open(const kernels::KernelSet& kernels, kernels::Device& device,
                                         const CudaBackendOptions& options);

  Peer peer(const kernels::conv2d::ForwardArgs& args) override;
  Peer peer(const kernels::conv2d::DgradArgs& args) override;
  Peer peer(const kernels::conv2d::WgradArgs& args) override;
  Peer peer(const kernels::gemm::Args& args) override;
  Peer peer(const kernels::conv_relu_pool::ForwardArgs& args) override;
  Peer peer(const kernels::conv_relu_pool::BackwardArgs& args) override;

 private:
  /// Null where cuDNN has no plan.
  std::shared_ptr<bench::Unfused> make_unfused(const kernels::conv_relu_pool::Geometry& geometry, kernels::DType dtype);

  kernels::KernelSet kernels_;
  kernels::Device& device_;
  std::shared_ptr<Cudnn> cudnn_;  // null where it is missing, as the next; shared with the peers
  std::shared_ptr<CublasLt> cublas_;
};

}  // namespace gradring::nn
