// SPDX-License-Identifier: Apache-2.0
// With the host's kernels on the CPU: who is chosen needs no GPU.
#include "nn/backend/cuda/cuda_backend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/base/error.h"
#include "tests/nn/backend/cuda/plan_rig.h"
#include "tests/nn/backend/cuda/tables_of_a_gpu.h"

namespace gradring::tests {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class CudaBackend : public testing::Test {
 protected:
  nn::CudaBackend backend(const std::string& conv, const std::string& gemm) {
    nn::CudaBackendOptions options;
    options.conv = conv;
    options.gemm = gemm;
    options.say = [this](const std::string& text) { said_.push_back(text); };
    return nn::CudaBackend(kernels::kernel_set(), device_, options);
  }

  kernels::HostDevice device_;
  std::vector<std::string> said_;
};

TEST_F(CudaBackend, OpensNoLibraryWhereOurKernelsAreNamed) {
  nn::CudaBackend ours = backend("direct", "strips");
  EXPECT_THAT(said_, IsEmpty());
  PlanRig conv(layer_nodes(nn::Conv2d{.in_channels = 1, .out_channels = 2, .kernel = 3}, {2, 5, 5, 1}, false,
                           kernels::DType::f32));
  expect_same(conv.run({ours.plan(conv.nodes()).get()}, 2), conv.run_ours(2));
  PlanRig linear(layer_nodes(nn::Linear{.in_features = 3, .out_features = 2}, {4, 3}, false, kernels::DType::f32));
  expect_same(linear.run({ours.plan(linear.nodes()).get()}, 4), linear.run_ours(4));
}

TEST_F(CudaBackend, FusesConvolutionAndPoolingOnlyIn16Bits) {
  const TablesOfAGpu tables;
  const auto planned = [&](const std::string& conv, kernels::DType dtype, std::shared_ptr<nn::Cudnn> cudnn) {
    nn::CudaBackendOptions options;
    options.conv = conv;
    nn::CudaBackend backend(tables.set(), device_, options, {.cudnn = std::move(cudnn), .cublas = nullptr});
    return backend.plan(pooled_convolution(dtype))->description();
  };
  using enum kernels::DType;
  EXPECT_EQ(planned("auto", f16, nullptr), "conv_relu_pool/wgmma");
  EXPECT_EQ(planned("auto", bf16, nullptr), "conv_relu_pool/wgmma");
  EXPECT_EQ(planned("auto", f32, nullptr), "conv2d/tiled") << "in f32 the fused kernel has one thread per weight";
  EXPECT_EQ(planned("direct", f32, nullptr), "conv_relu_pool/direct") << "by its name";
}

TEST_F(CudaBackend, RejectsNamesThatNobodyHas) {
  for (const auto& [conv, gemm] : {std::pair{"onednn", "auto"}, std::pair{"auto", "onednn"}}) {
    try {
      backend(conv, gemm);
      FAIL() << conv << ", " << gemm;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), HasSubstr("unknown variant 'onednn'"));
    }
  }
}

TEST_F(CudaBackend, GoesOnWithoutALibraryThatDoesNotStartAndSaysSo) {
  nn::CudaBackend automatic = backend("auto", "auto");
  if (said_.empty()) GTEST_SKIP() << "only without a GPU: cuDNN and cuBLAS start here";
  EXPECT_THAT(said_, testing::Contains(HasSubstr("our own kernels compute every convolution (")));
  PlanRig conv(layer_nodes(nn::Conv2d{.in_channels = 1, .out_channels = 2, .kernel = 3}, {2, 5, 5, 1}, false,
                           kernels::DType::f16));
  expect_same(conv.run({automatic.plan(conv.nodes()).get()}, 2), conv.run_ours(2));
  EXPECT_THROW(backend("cudnn", "auto"), DeviceError);
}

}  // namespace
}  // namespace gradring::tests
