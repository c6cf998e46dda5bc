// SPDX-License-Identifier: Apache-2.0
// Libraries beside our kernels: that they compute the same is what makes them a yardstick.
#include "nn/backend/cpu/onednn_peers.h"
#include "nn/backend/cpu/onednn.h"

#include <gtest/gtest.h>

#include "kernels/host/host_device.h"
#include "tests/nn/support/expect_peers.h"

namespace gradring::tests {
namespace {

using kernels::DType;

class OnednnPeers : public testing::Test {
 protected:
  void SetUp() override {
    if (!nn::has_onednn()) GTEST_SKIP() << nn::describe_onednn();
    peers_ = nn::make_onednn_peers(device_);
  }

  kernels::HostDevice device_;
  std::unique_ptr<kernels::PeerMaker> peers_;
};

TEST_F(OnednnPeers, FulfilTheContractsOfOurKernels) {
  expect_peers(*peers_, device_, DType::f32, {.conv2d = "onednn", .gemm = "onednn", .fused = "onednn, then pooling"});
}

TEST_F(OnednnPeers, HaveNothingFor16Bits) { expect_peers(*peers_, device_, DType::f16, {}); }

TEST(OnednnPeersOfThisBuild, AreThereIfOnednnIs) {
  kernels::HostDevice device;
  EXPECT_EQ(nn::make_onednn_peers(device) != nullptr, nn::has_onednn());
}

}  // namespace
}  // namespace gradring::tests
