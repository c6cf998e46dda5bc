// SPDX-License-Identifier: Apache-2.0
// What counting brings of kernels, copies and functions of the host; and occupancy, beside NVIDIA's calculator.
#include "kernels/simulated_gpu/cudart/counting.h"

#include <cuda_occupancy.h>

#include <array>

#include "kernels/simulated_gpu/counters/occupancy.h"
#include "kernels/simulated_gpu/cudart/host_function.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "tests/kernels/simulated_gpu/cudart/cudart_test.h"
#include "tests/kernels/simulated_gpu/cudart/registered_kernels.h"

namespace gradring::tests {
namespace {

using simulated_gpu::CountedWork;
using testing::ElementsAre;
using Kind = CountedWork::Kind;

/// x[thread] += 1
constexpr const char* kIncrement = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add_one(.param .u64 x) {
  .reg .u64 %rd<4>;
  .reg .u32 %r<4>;
  ld.param.u64 %rd1, [x];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r3, %r2, 1;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";
constexpr std::uint64_t kInstructionsOfWarp = 8;

class Counting : public Cudart {
 protected:
  void SetUp() override {
    Cudart::SetUp();
    static RegisteredKernels kernels({{80, kIncrement}});
    static const void* const add_one = kernels.kernel("add_one");
    add_one_ = add_one;
  }
  void launch(std::uint32_t* x, cudaStream_t stream, unsigned threads = 64) {
    cudaLaunchConfig_t config{};
    config.gridDim = {1};
    config.blockDim = {threads};
    config.stream = stream;
    std::array<void*, 1> arguments = {static_cast<void*>(&x)};
    ok(cudaLaunchKernelExC(&config, add_one_, arguments.data()));
  }
  static void begin() { gradring_simulated_gpu()->begin_counting(false); }
  static std::vector<CountedWork> end() { return gradring_simulated_gpu()->end_counting(); }

  const void* add_one_ = nullptr;
};

TEST_F(Counting, IsOfWhatIsEnqueuedMeanwhile) {
  const cudaStream_t stream = make_stream();
  std::uint32_t* const x = allocate(64, stream);
  ok(cudaMemsetAsync(x, 0, 256, stream));
  launch(x, stream);
  begin();
  launch(x, stream, 33);
  ok(cudaMemcpyAsync(pinned(64), x, 256, cudaMemcpyDeviceToHost, stream));
  ok(cudaMemsetAsync(x, 0, 64, stream));
  const std::vector<CountedWork> work = end();
  launch(x, stream);
  finish(stream);
  ASSERT_EQ(work.size(), 3u);
  ASSERT_TRUE(work[0].launch);
  EXPECT_EQ(work[0].name, "add_one");
  EXPECT_EQ(work[0].launch->all_warp_instructions(), 2 * kInstructionsOfWarp);
  EXPECT_EQ(work[0].launch->thread_instructions, 33 * kInstructionsOfWarp);
  EXPECT_EQ(work[0].launch->loads.sectors, 5u);
  EXPECT_EQ(work[0].graph_launch, 0u);
  EXPECT_EQ(work[0].bound_seconds, work[0].launch->bound.seconds());
  EXPECT_EQ(work[1].kind, Kind::copy);
  EXPECT_EQ(work[1].bytes, 256u);
  EXPECT_DOUBLE_EQ(work[1].bound_seconds, 256 / 64e9) << "PCI Express 5.0";
  EXPECT_EQ(work[2].kind, Kind::clear);
  EXPECT_EQ(work[2].name, "cudaMemsetAsync");
  EXPECT_TRUE(end().empty());
}

TEST_F(Counting, NamesTheNodesThatANodeOfAGraphWaitsFor) {
  const cudaStream_t stream = make_stream(), other = make_stream();
  const cudaEvent_t fork = make_event(), join = make_event();
  std::uint32_t* const x = allocate(64, stream);
  std::uint32_t* const y = allocate(64, stream);
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  ok(cudaMemsetAsync(x, 0, 256, stream));
  ok(cudaEventRecord(fork, stream));
  ok(cudaStreamWaitEvent(other, fork, 0));
  launch(x, stream);
  ok(cudaMemsetAsync(y, 0, 256, other));
  ok(simulated_gpu::launch_host_function(
      "ncclAllReduce", other, [](void*) {}, nullptr));
  ok(cudaEventRecord(join, other));
  ok(cudaStreamWaitEvent(stream, join, 0));
  launch(y, stream);
  cudaGraph_t graph = nullptr;
  ok(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable = nullptr;
  ok(cudaGraphInstantiate(&executable, graph, 0));
  ok(cudaGraphLaunch(executable, stream));
  begin();
  launch(x, stream);
  for (int repetition = 0; repetition < 2; ++repetition) ok(cudaGraphLaunch(executable, stream));
  const std::vector<CountedWork> work = end();
  ASSERT_EQ(work.size(), 11u) << "one kernel, and twice five nodes";
  EXPECT_EQ(work[0].graph_launch, 0u);
  for (const std::size_t first : {1, 6}) {
    EXPECT_EQ(work[first].graph_launch, first / 5 + 1);
    EXPECT_THAT(work[first].after, testing::IsEmpty());
    EXPECT_THAT(work[first + 1].after, ElementsAre(first));
    EXPECT_THAT(work[first + 2].after, ElementsAre(first));
    EXPECT_THAT(work[first + 3].after, ElementsAre(first + 2));
    EXPECT_THAT(work[first + 4].after, testing::UnorderedElementsAre(first + 1, first + 3));
    EXPECT_EQ(work[first + 1].launch->all_warp_instructions(), 2 * kInstructionsOfWarp);
    EXPECT_EQ(work[first + 3].kind, Kind::host_function);
    EXPECT_EQ(work[first + 3].name, "ncclAllReduce");
  }
  finish(stream);
}

TEST_F(Counting, BringsTheSameWithEverySeed) {
  for (const std::uint64_t seed : {0, 5}) {
    restart({.card = "a100", .seed = seed, .threads = 2});
    const cudaStream_t stream = make_stream();
    std::uint32_t* const x = allocate(64, stream);
    ok(cudaMemsetAsync(x, 0, 256, stream));
    begin();
    launch(x, stream);
    const std::vector<CountedWork> work = end();
    ASSERT_EQ(work.size(), 1u);
    EXPECT_EQ(work[0].launch->all_warp_instructions(), 2 * kInstructionsOfWarp);
    EXPECT_EQ(work[0].launch->distinct_read_bytes, 256u);
  }
}

/// NVIDIA's calculator for a card of ours.
cudaOccResult nvidias(const simulated_gpu::Card& card, const simulated_gpu::BlockNeeds& needs) {
  cudaOccDeviceProp properties;
  properties.computeMajor = card.major;
  properties.computeMinor = card.minor;
  properties.maxThreadsPerBlock = simulated_gpu::kMostThreadsPerBlock;
  properties.maxThreadsPerMultiprocessor = card.threads_per_multiprocessor;
  properties.regsPerBlock = properties.regsPerMultiprocessor = simulated_gpu::kRegisters;
  properties.warpSize = simulated_gpu::kWarpThreads;
  properties.sharedMemPerBlock = simulated_gpu::kSharedWithoutAsking;
  properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(card.shared_bytes_per_multiprocessor);
  properties.numSms = card.multiprocessors;
  properties.sharedMemPerBlockOptin = static_cast<std::size_t>(card.shared_bytes_per_block);
  properties.reservedSharedMemPerBlock = card.reserved_shared_bytes;
  cudaOccFuncAttributes attributes{};
  attributes.maxThreadsPerBlock = simulated_gpu::kMostThreadsPerBlock;
  attributes.numRegs = needs.registers;
  attributes.sharedSizeBytes = 0;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = properties.sharedMemPerBlockOptin;
  attributes.numBlockBarriers = 1;
  cudaOccDeviceState state;
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result;
  EXPECT_EQ(cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                    static_cast<int>(needs.threads), needs.shared_bytes),
            CUDA_OCC_SUCCESS);
  return result;
}

TEST(Occupancy, IsThatOfNvidiasCalculator) {
  int cases = 0;
  for (const simulated_gpu::Card& card : simulated_gpu::cards())
    for (unsigned threads = 1; threads <= 1024; threads += 31)
      for (const int registers : {8, 24, 31, 32, 33, 40, 64, 65, 96, 127, 128, 168, 254, 255})
        for (const std::size_t shared : {0, 1, 127, 128, 4096, 16384, 50000, 100000, 166000, 166912, 167936, 232448}) {
          const simulated_gpu::BlockNeeds needs{.threads = threads, .registers = registers, .shared_bytes = shared};
          if (needs.shared_bytes > static_cast<std::size_t>(card.shared_bytes_per_block)) continue;
          const simulated_gpu::Occupancy found = occupancy_of(card, needs);
          const cudaOccResult expected = nvidias(card, needs);
          ASSERT_EQ(found.blocks(), expected.activeBlocksPerMultiprocessor)
              << card.name << ": " << threads << " threads, " << registers << " registers, " << shared << " bytes";
          EXPECT_EQ(found.by_registers, expected.blockLimitRegs);
          EXPECT_EQ(found.by_warps, expected.blockLimitWarps);
          ++cases;
        }
  EXPECT_GT(cases, 10000);
}

}  // namespace
}  // namespace gradring::tests
