// SPDX-License-Identifier: Apache-2.0
// Cooperative launches: grid.sync of cooperative groups, as nvcc compiles it.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/nvcc_kernel.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// nvcc 13.0, -ptx -arch=compute_90:
///
///     __global__ void neighbours(unsigned* a, unsigned* b, unsigned n) {
///       cooperative_groups::grid_group grid = cooperative_groups::this_grid();
///       unsigned i = grid.thread_rank();
///       if (i < n) b[i] = a[i] + a[(i + 1) % n];
///       grid.sync();
///       if (i < n) a[i] = b[i] + b[(i + 64) % n];
///     }
constexpr std::string_view kNeighbours = R"(
.version 9.0
.target sm_90
.address_size 64
.visible .entry neighbours(
.param .u64 neighbours_param_0,
.param .u64 neighbours_param_1,
.param .u32 neighbours_param_2
)
{
.reg .pred %p<7>;
.reg .b32 %r<44>;
.reg .b64 %rd<30>;
ld.param.u64 %rd7, [neighbours_param_0];
ld.param.u64 %rd8, [neighbours_param_1];
ld.param.u32 %r11, [neighbours_param_2];
cvta.to.global.u64 %rd1, %rd8;
mov.u32 %r12, %envreg2;
cvt.u64.u32 %rd9, %r12;
mov.u32 %r13, %envreg1;
cvt.u64.u32 %rd10, %r13;
bfi.b64 %rd2, %rd10, %rd9, 32, 32;
mov.u32 %r1, %ctaid.z;
mov.u32 %r2, %nctaid.y;
mul.wide.u32 %rd11, %r2, %r1;
mov.u32 %r3, %nctaid.x;
cvt.u64.u32 %rd12, %r3;
mov.u32 %r4, %ctaid.y;
cvt.u64.u32 %rd13, %r4;
add.s64 %rd14, %rd11, %rd13;
mul.lo.s64 %rd15, %rd14, %rd12;
mov.u32 %r5, %ctaid.x;
cvt.u64.u32 %rd16, %r5;
add.s64 %rd17, %rd15, %rd16;
mov.u32 %r14, %ntid.y;
mov.u32 %r15, %ntid.x;
mul.lo.s32 %r16, %r15, %r14;
mov.u32 %r17, %ntid.z;
mul.lo.s32 %r18, %r16, %r17;
cvt.u64.u32 %rd18, %r18;
mul.lo.s64 %rd19, %rd17, %rd18;
mov.u32 %r6, %tid.z;
mov.u32 %r7, %tid.y;
mad.lo.s32 %r19, %r14, %r6, %r7;
mov.u32 %r8, %tid.x;
mad.lo.s32 %r20, %r19, %r15, %r8;
cvt.u64.u32 %rd20, %r20;
add.s64 %rd21, %rd19, %rd20;
cvt.u32.u64 %r9, %rd21;
setp.ge.u32 %p1, %r9, %r11;
cvta.to.global.u64 %rd3, %rd7;
shl.b64 %rd22, %rd21, 2;
and.b64 %rd23, %rd22, 17179869180;
add.s64 %rd4, %rd3, %rd23;
add.s64 %rd5, %rd1, %rd23;
@%p1 bra $L__BB0_2;
ld.global.u32 %r21, [%rd4];
add.s32 %r22, %r9, 1;
rem.u32 %r23, %r22, %r11;
mul.wide.u32 %rd24, %r23, 4;
add.s64 %rd25, %rd3, %rd24;
ld.global.u32 %r24, [%rd25];
add.s32 %r25, %r24, %r21;
st.global.u32 [%rd5], %r25;
$L__BB0_2:
setp.ne.s64 %p2, %rd2, 0;
@%p2 bra $L__BB0_4;
trap;
$L__BB0_4:
barrier.sync 0;
neg.s32 %r26, %r6;
add.s32 %r27, %r8, %r7;
setp.ne.s32 %p3, %r27, %r26;
@%p3 bra $L__BB0_7;
add.s64 %rd26, %rd2, 4;
mul.lo.s32 %r30, %r3, %r2;
mov.u32 %r31, %nctaid.z;
mul.lo.s32 %r32, %r30, %r31;
neg.s32 %r33, %r1;
add.s32 %r34, %r5, %r4;
setp.eq.s32 %p4, %r34, %r33;
mov.u32 %r35, -2147483647;
sub.s32 %r36, %r35, %r32;
selp.b32 %r29, %r36, 1, %p4;
atom.add.release.gpu.u32 %r28,[%rd26],%r29;
$L__BB0_6:
ld.acquire.gpu.u32 %r37,[%rd26];
xor.b32 %r38, %r37, %r28;
setp.gt.s32 %p5, %r38, -1;
@%p5 bra $L__BB0_6;
$L__BB0_7:
barrier.sync 0;
@%p1 bra $L__BB0_9;
ld.global.u32 %r39, [%rd5];
add.s32 %r40, %r9, 64;
rem.u32 %r41, %r40, %r11;
mul.wide.u32 %rd28, %r41, 4;
add.s64 %rd29, %rd1, %rd28;
ld.global.u32 %r42, [%rd29];
add.s32 %r43, %r42, %r39;
st.global.u32 [%rd4], %r43;
$L__BB0_9:
ret;
})";

TEST(CooperativeLaunch, GridSyncOrdersBlocks) {
  const NvccKernel kernel(kNeighbours, "neighbours");
  constexpr U32 kCount = 640;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GlobalMemory memory;
    DeviceArray<U32> a(memory, numbered(kCount));
    DeviceArray<U32> b(memory, kCount);
    const unsigned threads = 1 + static_cast<unsigned>(seed % 3);
    kernel.run(memory, {.grid = {5, 2}, .block = {8, 8}, .parameters = {}, .is_cooperative = true},
               {.seed = seed, .threads = threads}, a.address(), b.address(), kCount);
    const std::vector<U32> results = a.values();
    const auto sum = [](U32 i) { return i % kCount + (i + 1) % kCount; };
    for (U32 i = 0; i < kCount; ++i) ASSERT_EQ(results[i], sum(i) + sum((i + 64) % kCount)) << "seed " << seed;
  }
}

TEST(CooperativeLaunch, RejectsMoreBlocksThanTheGpuHolds) {
  GlobalMemory memory;
  DeviceArray<U32> a(memory, numbered(640));
  const std::string text = fault_of([&] {
    NvccKernel(kNeighbours, "neighbours")
        .run(memory, {.grid = {10}, .block = {64}, .parameters = {}, .most_resident_blocks = 9, .is_cooperative = true},
             {}, a.address(), a.address(), 640u);
  });
  EXPECT_NE(text.find("a cooperative launch of 10 blocks; the GPU holds 9 at once"), text.npos) << text;
}

/// The workspace is missing, as on a GPU: cooperative groups end the kernel.
TEST(CooperativeLaunch, GridSyncOfAnotherLaunchTraps) {
  GlobalMemory memory;
  DeviceArray<U32> a(memory, numbered(640));
  DeviceArray<U32> b(memory, 640);
  const std::string text = fault_of([&] {
    NvccKernel(kNeighbours, "neighbours")
        .run(memory, {.grid = {10}, .block = {64}, .parameters = {}}, {}, a.address(), b.address(), 640u);
  });
  EXPECT_EQ(text.find("trap"), 0u) << text;
}

}  // namespace
}  // namespace gradring::simulated_gpu
