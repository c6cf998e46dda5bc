// SPDX-License-Identifier: Apache-2.0
// Attributes of launches: cooperative ones, clusters.
#include <array>

#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

namespace gradring::tests {
namespace {

/// The first one is a barrier of all blocks, in the workspace of cooperative groups; block 0 stores how many came. The
/// second one: each block stores 10 * the blocks of its cluster + its rank.
constexpr const char* kKernels = R"(
.version 8.0
.target sm_90
.address_size 64
.visible .entry meet(.param .u64 to) {
  .reg .u64 %rd<4>;
  .reg .u32 %r<6>;
  .reg .pred %p<3>;
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %envreg1;
  mov.u32 %r2, %envreg2;
  mov.b64 %rd2, {%r2, %r1};
  mov.u32 %r3, %nctaid.x;
  atom.add.release.gpu.u32 %r4, [%rd2+4], 1;
$poll:
  ld.acquire.gpu.u32 %r4, [%rd2+4];
  setp.lt.u32 %p1, %r4, %r3;
  @%p1 bra $poll;
  mov.u32 %r5, %ctaid.x;
  setp.eq.u32 %p2, %r5, 0;
  @%p2 st.global.u32 [%rd1], %r4;
  ret;
}
.visible .entry rank(.param .u64 to) {
  .reg .u64 %rd<4>;
  .reg .u32 %r<6>;
  ld.param.u64 %rd1, [to];
  mov.u32 %r1, %cluster_ctarank;
  mov.u32 %r2, %cluster_nctarank;
  mad.lo.u32 %r1, %r2, 10, %r1;
  mov.u32 %r3, %ctaid.x;
  mul.wide.u32 %rd2, %r3, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

class LaunchAttributes : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    static const auto kernels = [] {
      RegisteredKernels made({{90, kKernels}});
      return std::array{made.kernel("meet"), made.kernel("rank")};
    }();
    meet_ = kernels[0];
    rank_ = kernels[1];
    stream_ = make_stream();
  }

  cudaError_t launch(const void* kernel, unsigned blocks, cudaLaunchAttribute attribute, std::uint32_t* to) {
    cudaLaunchConfig_t config{};
    config.gridDim = {blocks};
    config.blockDim = {1};
    config.stream = stream_;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* arguments[] = {&to};
    return cudaLaunchKernelExC(&config, kernel, arguments);
  }
  static cudaLaunchAttribute cooperative() {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeCooperative;
    attribute.val.cooperative = 1;
    return attribute;
  }
  static cudaLaunchAttribute cluster(unsigned blocks) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = blocks;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    return attribute;
  }

  const void* meet_ = nullptr;
  const void* rank_ = nullptr;
  cudaStream_t stream_ = nullptr;
};

TEST_F(LaunchAttributes, BlocksOfACooperativeLaunchMeet) {
  std::uint32_t* const data = pinned(1);
  ok(launch(meet_, 1000, cooperative(), data));
  finish(stream_);
  EXPECT_EQ(data[0], 1000u);
}

TEST_F(LaunchAttributes, CooperativeLaunchesAreNotLargerThanTheGpu) {
  std::uint32_t* const data = pinned(1);
  EXPECT_EQ(launch(meet_, 132 * 32 + 1, cooperative(), data), cudaErrorCooperativeLaunchTooLarge);
  expect_fault("meet: a cooperative launch of 4225 blocks, of which the card holds 4224 at once");
}

TEST_F(LaunchAttributes, BlocksAreInClusters) {
  std::uint32_t* const data = pinned(6);
  ok(launch(rank_, 6, cluster(3), data));
  finish(stream_);
  for (unsigned block = 0; block < 6; ++block) EXPECT_EQ(data[block], 30 + block % 3);
}

TEST_F(LaunchAttributes, ClustersHaveLimits) {
  std::uint32_t* const data = pinned(6);
  EXPECT_EQ(launch(rank_, 6, cluster(4), data), cudaErrorInvalidConfiguration);
  expect_fault("a grid that clusters do not divide");
  EXPECT_EQ(launch(rank_, 34, cluster(17), data), cudaErrorInvalidClusterSize);
  expect_fault("a cluster of 17 blocks, expected 1 to 16");
}

}  // namespace
}  // namespace gradring::tests
