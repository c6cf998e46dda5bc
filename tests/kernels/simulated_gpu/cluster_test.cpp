// SPDX-License-Identifier: Apache-2.0
// Clusters: their barrier, distributed shared memory, mbarriers of other blocks.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/nvcc_kernel.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// nvcc 13.0, -ptx -arch=compute_90, of the histogram in the CUDA C++ Programming Guide, "Distributed Shared Memory":
///
///     __global__ void __cluster_dims__(2, 1, 1) histogram(int* bins, int nbins, int bins_per_block, const int* input,
///                                                         int count)
constexpr std::string_view kHistogram = R"(
.version 9.0
.target sm_90
.address_size 64
.extern .shared .align 16 .b8 smem[];
.visible .entry histogram(
.param .u64 histogram_param_0,
.param .u32 histogram_param_1,
.param .u32 histogram_param_2,
.param .u64 histogram_param_3,
.param .u32 histogram_param_4
)
.explicitcluster
.reqnctapercluster 2, 1, 1
{
.reg .pred %p<9>;
.reg .b32 %r<52>;
.reg .b64 %rd<16>;
ld.param.u64 %rd4, [histogram_param_0];
ld.param.u32 %r14, [histogram_param_1];
ld.param.u32 %r15, [histogram_param_2];
ld.param.u64 %rd5, [histogram_param_3];
ld.param.u32 %r16, [histogram_param_4];
mov.u32 %r17, %nctaid.y;
mov.u32 %r18, %ctaid.z;
mov.u32 %r19, %ctaid.y;
mad.lo.s32 %r20, %r17, %r18, %r19;
mov.u32 %r1, %nctaid.x;
mov.u32 %r21, %ctaid.x;
mad.lo.s32 %r22, %r20, %r1, %r21;
mov.u32 %r23, %ntid.y;
mov.u32 %r2, %ntid.x;
mul.lo.s32 %r24, %r2, %r23;
mov.u32 %r25, %ntid.z;
mul.lo.s32 %r26, %r24, %r25;
mov.u32 %r27, %tid.z;
mov.u32 %r28, %tid.y;
mad.lo.s32 %r29, %r23, %r27, %r28;
mov.u32 %r51, %tid.x;
mad.lo.s32 %r30, %r29, %r2, %r51;
mad.lo.s32 %r50, %r26, %r22, %r30;
mov.b32 %r5, %cluster_ctarank;
setp.ge.s32 %p1, %r51, %r15;
@%p1 bra $L__BB0_3;
mov.u32 %r49, %r51;
$L__BB0_2:
shl.b32 %r31, %r49, 2;
mov.u32 %r32, smem;
add.s32 %r33, %r32, %r31;
mov.u32 %r34, 0;
st.shared.u32 [%r33], %r34;
add.s32 %r49, %r49, %r2;
setp.lt.s32 %p2, %r49, %r15;
@%p2 bra $L__BB0_2;
$L__BB0_3:
barrier.cluster.arrive;
barrier.cluster.wait;
setp.ge.s32 %p3, %r50, %r16;
@%p3 bra $L__BB0_6;
add.s32 %r8, %r14, -1;
mul.lo.s32 %r9, %r2, %r1;
cvta.to.global.u64 %rd1, %rd5;
$L__BB0_5:
mul.wide.s32 %rd6, %r50, 4;
add.s64 %rd7, %rd1, %rd6;
ld.global.u32 %r35, [%rd7];
setp.lt.s32 %p4, %r35, 0;
setp.lt.s32 %p5, %r35, %r14;
selp.b32 %r36, %r35, %r8, %p5;
selp.b32 %r37, 0, %r36, %p4;
div.s32 %r38, %r37, %r15;
mov.u32 %r39, smem;
{ .reg .b64 %tmp;
cvt.u64.u32 %tmp, %r39;
cvta.shared.u64 %rd8, %tmp; }
mapa.u64 %rd9, %rd8, %r38;
mul.lo.s32 %r40, %r38, %r15;
sub.s32 %r41, %r37, %r40;
mul.wide.s32 %rd10, %r41, 4;
add.s64 %rd11, %rd9, %rd10;
atom.add.u32 %r42, [%rd11], 1;
add.s32 %r50, %r50, %r9;
setp.lt.s32 %p6, %r50, %r16;
@%p6 bra $L__BB0_5;
$L__BB0_6:
barrier.cluster.arrive;
barrier.cluster.wait;
@%p1 bra $L__BB0_9;
cvta.to.global.u64 %rd2, %rd4;
mul.lo.s32 %r43, %r5, %r15;
cvt.u64.u32 %rd3, %r43;
mov.u32 %r45, smem;
$L__BB0_8:
cvt.s64.s32 %rd12, %r51;
add.s64 %rd13, %rd12, %rd3;
shl.b64 %rd14, %rd13, 2;
add.s64 %rd15, %rd2, %rd14;
shl.b32 %r44, %r51, 2;
add.s32 %r46, %r45, %r44;
ld.shared.u32 %r47, [%r46];
atom.global.add.u32 %r48, [%rd15], %r47;
add.s32 %r51, %r51, %r2;
setp.lt.s32 %p8, %r51, %r15;
@%p8 bra $L__BB0_8;
$L__BB0_9:
ret;
})";

TEST(Cluster, BinsAreSharedOutOverItsBlocks) {
  const NvccKernel kernel(kHistogram, "histogram");
  constexpr U32 kBins = 20, kCount = 3000;
  std::vector<U32> input(kCount), expected(kBins);
  for (U32 i = 0; i < kCount; ++i) ++expected[input[i] = i * i % 23 % kBins];
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GlobalMemory memory;
    DeviceArray<U32> bins(memory, std::vector<U32>(kBins, 0));
    DeviceArray<U32> values(memory, input);
    const unsigned threads = 1 + static_cast<unsigned>(seed % 3);
    kernel.run(memory, {.grid = {8}, .block = {96}, .dynamic_shared_bytes = kBins / 2 * 4, .parameters = {}},
               {.seed = seed, .threads = threads}, bins.address(), kBins, kBins / 2, values.address(), kCount);
    ASSERT_EQ(bins.values(), expected) << "seed " << seed;
  }
}

TEST(Cluster, RejectsGridsThatAreNoMultiple) {
  GlobalMemory memory;
  const std::string text = fault_of([&] {
    NvccKernel(kHistogram, "histogram")
        .run(memory, {.grid = {7}, .block = {32}, .parameters = {}}, {}, U64{}, 1u, 1u, U64{}, 1u);
  });
  EXPECT_NE(text.find("a grid of 7 x 1 x 1 blocks; expected multiples of the cluster's 2 x 1 x 1"), text.npos) << text;
}

/// Words that thread 0 of each block stores: `body` sets %r10. The grid is 4 x 4, and clusters are 2 x 2 x 1.
std::vector<U32> words_of(const std::string& body, const ExecutionOptions& options = {}) {
  GlobalMemory memory;
  DeviceArray<U32> words(memory, std::vector<U32>(16, 0));
  const TestKernel kernel(
      ".reg .b32 %thread; .reg .pred %q<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .b64 %state;\n"
      ".shared .align 8 .b8 shared[64]; mov.u32 %thread, %tid.x; setp.eq.u32 %q1, %thread, 0;\n"
      "mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, shared;\n" +
          body +
          "\nmov.u32 %r11, %ctaid.x; mov.u32 %r12, %ctaid.y; mad.lo.u32 %r11, %r12, 4, %r11;\n"
          "mul.wide.u32 %rd1, %r11, 4; add.u64 %rd1, %rd1, %p0; @%q1 st.global.u32 [%rd1], %r10;",
      1, ".explicitcluster\n.reqnctapercluster 2, 2, 1");
  kernel.run(memory, {words.address()}, {4, 4}, {64}, options);
  return words.values();
}

const std::string kSync = "barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;\n";

TEST(Cluster, HasSpecialRegisters) {
  const std::vector<U32> words = words_of(
      "mov.u32 %r3, %cluster_ctaid.x; mov.u32 %r4, %cluster_ctaid.y; mov.u32 %r5, %clusterid.x;\n"
      "mov.u32 %r6, %clusterid.y; mov.u32 %r7, %nclusterid.x; mov.u32 %r8, %cluster_nctaid.y;\n"
      "mov.u32 %r9, %cluster_nctarank; mov.pred %q2, %is_explicit_cluster; selp.u32 %r13, 1, 0, %q2;\n"
      "mov.u32 %r10, %r13; mad.lo.u32 %r10, %r10, 10, %r9; mad.lo.u32 %r10, %r10, 10, %r8;\n"
      "mad.lo.u32 %r10, %r10, 10, %r7; mad.lo.u32 %r10, %r10, 10, %r6; mad.lo.u32 %r10, %r10, 10, %r5;\n"
      "mad.lo.u32 %r10, %r10, 10, %r1; mad.lo.u32 %r10, %r10, 10, %r4; mad.lo.u32 %r10, %r10, 10, %r3;");
  for (U32 y = 0; y < 4; ++y)
    for (U32 x = 0; x < 4; ++x)
      EXPECT_EQ(words[4 * y + x],
                142200000 + 10000 * (y / 2) + 1000 * (x / 2) + 100 * (x % 2 + 2 * (y % 2)) + 10 * (y % 2) + x % 2);
}

TEST(Cluster, LanesThatWaitAreCountedOnce) {
  GlobalMemory memory;
  const TestKernel kernel(
      ".reg .b32 %thread; .reg .pred %q<9>; mov.u32 %thread, %tid.x; setp.lt.u32 %q1, %thread, 16;\n"
      "@!%q1 ret; barrier.cluster.arrive; setp.lt.u32 %q2, %thread, 8;\n"
      "@%q2 barrier.cluster.wait; @!%q2 barrier.cluster.wait;",
      0, ".explicitcluster\n.reqnctapercluster 4, 1, 1");
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Counters counters = kernel.run(memory, {}, {4}, {32}, {.seed = seed});
    const auto& wait = counters.instructions[kernel.index_of("@%q2 barrier.cluster.wait")];
    EXPECT_EQ(wait.lanes, 4u * 8);
    EXPECT_EQ(wait.executions, 4u);
  }
}

/// PTX ISA, barrier.cluster: a wait is for the non-exited threads of the cluster. Half of each warp ends while the other
/// half waits, by a branch, or by a predicate after all have arrived.
TEST(Cluster, BarrierCountsThreadsThatHaveNotEnded) {
  const std::string begin =
      ".reg .b32 %thread; .reg .pred %q<9>; mov.u32 %thread, %tid.x; setp.ge.u32 %q1, %thread, 16;\n";
  for (const std::string body : {"@%q1 bra $end; barrier.cluster.arrive; barrier.cluster.wait; $end: ret;",
                                 "@!%q1 barrier.cluster.arrive; @%q1 ret; barrier.cluster.wait;"})
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
      GlobalMemory memory;
      const TestKernel kernel(begin + body, 0, ".explicitcluster\n.reqnctapercluster 4, 1, 1");
      EXPECT_EQ(fault_of([&] { kernel.run(memory, {}, {4}, {32}, {.seed = seed}); }), "") << body;
    }
}

/// Each block stores its rank in the next one's shared memory, and reads what the one behind the next has there.
TEST(Cluster, BlocksAccessEachOthersSharedMemory) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<U32> words = words_of(
        kSync +
            "add.u32 %r3, %r1, 1; and.b32 %r3, %r3, 3; mapa.shared::cluster.u32 %r4, %r2, %r3;\n"
            "@%q1 st.shared::cluster.u32 [%r4+8], %r1;\n" +
            kSync +
            "ld.shared.u32 %r5, [%r2+8]; add.u32 %r6, %r1, 2; and.b32 %r6, %r6, 3;\n"
            "cvt.u64.u32 %rd2, %r2; cvta.shared.u64 %rd3, %rd2; mapa.u64 %rd4, %rd3, %r6; ld.u32 %r7, [%rd4+8];\n"
            "getctarank.u64 %r8, %rd4; getctarank.shared::cluster.u32 %r9, %r2; atom.add.u32 %r14, [%rd4+8], 0;\n"
            "mad.lo.u32 %r10, %r5, 10, %r7; mad.lo.u32 %r10, %r10, 10, %r8; mad.lo.u32 %r10, %r10, 10, %r9;\n" +
            kSync,
        {.seed = seed});
    for (U32 y = 0; y < 4; ++y)
      for (U32 x = 0; x < 4; ++x) {
        const U32 rank = x % 2 + 2 * (y % 2);
        EXPECT_EQ(words[4 * y + x], 1000 * ((rank + 3) % 4) + 100 * ((rank + 1) % 4) + 10 * ((rank + 2) % 4) + rank);
      }
  }
}

/// Rank 0 waits at an mbarrier of its own at which every block arrives.
TEST(Cluster, BlocksArriveAtMbarriersOfOthers) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<U32> words =
        words_of("@%q1 mbarrier.init.shared::cta.b64 [%r2], 4; fence.mbarrier_init.release.cluster;\n" + kSync +
                     "mov.u32 %r3, 0; mapa.shared::cluster.u32 %r4, %r2, %r3;\n"
                     "@%q1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\n"
                     "setp.ne.u32 %q2, %r1, 0; @%q2 bra $end;\n"
                     "$wait: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %q3, [%r2], 0; @!%q3 bra $wait;\n"
                     "$end: mov.u32 %r10, 1;\n" +
                     kSync,
                 {.seed = seed});
    EXPECT_EQ(words, std::vector<U32>(16, 1));
  }
}

TEST(Cluster, AnMbarrierThatNoBlockCompletesIsReported) {
  const std::string text = fault_of([] {
    words_of("@%q1 mbarrier.init.shared::cta.b64 [%r2], 4; fence.mbarrier_init.release.cluster;\n" + kSync +
             "$wait: mbarrier.try_wait.parity.shared::cta.b64 %q3, [%r2], 0; @!%q3 bra $wait; mov.u32 %r10, 1;\n");
  });
  EXPECT_NE(text.find("deadlock"), text.npos) << text;
  EXPECT_NE(text.find("mbarrier.try_wait"), text.npos) << text;
}

TEST(Cluster, ReportsWhatItsRulesForbid) {
  const auto fault = [](const std::string& body) { return fault_of([&] { words_of(body + "mov.u32 %r10, 1;"); }); };
  EXPECT_NE(fault("mov.u32 %r3, 4; mapa.shared::cluster.u32 %r4, %r2, %r3;").find("rank 4 of a cluster of 4 blocks"),
            std::string::npos);
  EXPECT_NE(fault("barrier.cluster.wait;").find("has not arrived"), std::string::npos);
  EXPECT_NE(fault("barrier.cluster.arrive; barrier.cluster.arrive;").find("has not waited since"), std::string::npos);
  const std::string map = "mov.u32 %r3, 1; mapa.shared::cluster.u32 %r4, %r2, %r3;";
  EXPECT_NE(fault(map + "ld.shared::cluster.u32 %r5, [%r4];").find("is read before it is written"), std::string::npos);
  EXPECT_NE(fault(map + "ld.shared::cluster.u32 %r5, [%r4+64];").find("is accessed out of bounds"), std::string::npos);
  // Rank 1 ends, and the others access it after a while.
  const std::string late = fault(
      "setp.eq.u32 %q2, %r1, 1; @%q2 ret; mov.u32 %r6, 0;\n"
      "$more: add.u32 %r6, %r6, 1; setp.lt.u32 %q3, %r6, 100000; @%q3 bra $more;" +
      map + "st.shared::cluster.u32 [%r4], %r1;");
  EXPECT_NE(late.find("which has ended"), std::string::npos) << late;
}

}  // namespace
}  // namespace gradring::simulated_gpu
