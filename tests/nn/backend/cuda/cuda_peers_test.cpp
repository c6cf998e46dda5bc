// SPDX-License-Identifier: Apache-2.0
// The peers against fakes that compute what they are told: what is told must be the contract of our kernels.
#include "nn/backend/cuda/cuda_peers.h"

#include <gtest/gtest.h>

#include "kernels/host/host_device.h"
#include "nn/backend/cuda/cudnn.h"
#include "tests/nn/backend/cuda/fake_cublaslt.h"
#include "tests/nn/backend/cuda/fake_cudnn.h"
#include "tests/nn/support/expect_peers.h"

namespace gradring::tests {
namespace {

const PeerNames kBoth = {.conv2d = "cudnn", .gemm = "cublaslt", .fused = "cudnn, then pooling"};

class CudaPeers : public testing::TestWithParam<kernels::DType> {
 protected:
  std::shared_ptr<nn::Cudnn> cudnn() { return std::make_shared<nn::Cudnn>(fake_cudnn_.api(), device_, options_); }
  std::shared_ptr<nn::CublasLt> cublas() { return std::make_shared<nn::CublasLt>(fake_cublas_.api(), device_); }

  kernels::HostDevice device_;
  nn::CudaBackendOptions options_;
  FakeCudnn fake_cudnn_;
  FakeCublasLt fake_cublas_;
};

INSTANTIATE_TEST_SUITE_P(OfType, CudaPeers,
                         testing::Values(kernels::DType::f32, kernels::DType::f16, kernels::DType::bf16),
                         [](const auto& type) { return std::string(kernels::name_of(type.param)); });

TEST_P(CudaPeers, FulfilTheContractsOfOurKernels) {
  fake_cudnn_.f32_dw = true;  // so that there is a peer of every pass
  nn::CudaPeers peers(kernels::kernel_set(), device_, cudnn(), cublas());
  expect_peers(peers, device_, GetParam(), kBoth);
}

TEST_P(CudaPeers, GiveGradientsOfWeightsInF32AndAddNothing) {
  nn::CudaPeers peers(kernels::kernel_set(), device_, cudnn(), nullptr);
  kernels::conv2d::WgradArgs args{.geometry = {.batch = 1,
                                               .in_height = 3,
                                               .in_width = 3,
                                               .in_channels = 1,
                                               .out_channels = 1,
                                               .kernel_height = 3,
                                               .kernel_width = 3},
                                  .dtype = GetParam()};
  EXPECT_EQ(peers.peer(args).has_value(), GetParam() == kernels::DType::f32)
      << "rounded to 16 bits it breaks the contract";
  fake_cudnn_.f32_dw = true;
  EXPECT_TRUE(peers.peer(args).has_value());
  args.accumulate = true;
  EXPECT_FALSE(peers.peer(args).has_value());
}

TEST_P(CudaPeers, AreThoseOfTheLibrariesThatAreThere) {
  nn::CudaPeers products(kernels::kernel_set(), device_, nullptr, cublas());
  expect_peers(products, device_, GetParam(), {.conv2d = "", .gemm = "cublaslt", .fused = ""});
  nn::CudaPeers none(kernels::kernel_set(), device_, nullptr, nullptr);
  expect_peers(none, device_, GetParam(), {});
}

}  // namespace
}  // namespace gradring::tests
