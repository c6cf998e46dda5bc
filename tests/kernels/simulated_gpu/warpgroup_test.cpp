// SPDX-License-Identifier: Apache-2.0
// wgmma: what orders its reads of shared memory and its sums. Its arithmetic is tested in units/.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// Four warps write A [64, 16], in which row m is of the number m, and B [16, 8] of the number 2. Both lie without
/// swizzle: pieces of 16 bytes, 128 bytes from one half of k to the other (LBO), 256 bytes to the next eight rows
/// (SBO).
const std::string kWrite =
    ".reg .b32 %thread; .reg .b64 %out; .reg .pred %q<5>; .reg .b16 %rs<5>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg "
    ".b64 %rd<9>;\n"
    ".shared .align 128 .b8 matrices[4096];\n"
    "mov.u32 %thread, %tid.x; mul.wide.u32 %out, %thread, 16; add.u64 %out, %out, %p0;\n"
    "mov.u32 %r1, matrices; shl.b32 %r2, %thread, 4; add.u32 %r2, %r2, %r1;\n"
    "shr.u32 %r3, %thread, 4; shl.b32 %r3, %r3, 3; and.b32 %r4, %thread, 7; add.u32 %r3, %r3, %r4;\n"
    "cvt.rn.f32.u32 %f1, %r3; cvt.rn.f16.f32 %rs1, %f1; mov.b32 %r3, {%rs1, %rs1};\n"
    "st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};\n"
    "mov.u32 %r4, 0x40004000; setp.lt.u32 %q1, %thread, 16; @%q1 st.shared.v4.u32 [%r2+2048], {%r4, %r4, %r4, %r4};\n"
    "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
    "mov.u64 %rd1, 0x1000080040; mov.u64 %rd2, 0x10000800c0;\n";
const std::string kPublish = "fence.proxy.async.shared::cta; bar.sync 0;\n";
const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kProduct =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, 1, 1, 1, 0, 0;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kWaitForProducts = "wgmma.wait_group.sync.aligned 0;\n";
const std::string kStore = "st.global.v4.f32 [%out], {%f1, %f2, %f3, %f4};\n";

std::vector<float> run(const std::string& body, const ExecutionOptions& options = {}, unsigned threads = 128) {
  GlobalMemory memory;
  const DeviceArray<float> sums(memory, std::size_t{512});
  TestKernel(kWrite + body, 1).run(memory, {sums.address()}, {}, {threads}, options);
  return sums.values();
}

TEST(Warpgroup, AddsProductsOfFourWarps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> sums =
        run(kPublish + kFence + kProduct + kProduct + kCommit + kWaitForProducts + kStore, {.seed = seed});
    for (unsigned thread = 0; thread < 128; ++thread)
      for (unsigned i = 0; i < 4; ++i) {
        const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8;
        ASSERT_EQ(sums[4 * thread + i], 2 * 16 * 2.0f * static_cast<float>(row)) << thread << " seed " << seed;
      }
  }
}

/// As an H100 counts them: 24 of m64n32k16, which are 16 of A and 8 of B (docs/counters.md). Here B has 8 columns.
TEST(Warpgroup, ReadsEachOperandOnce) {
  const auto wavefronts_of = [](const std::string& products) {
    GlobalMemory memory;
    const DeviceArray<float> sums(memory, std::size_t{512});
    return TestKernel(kWrite + kPublish + kFence + products + kCommit + kWaitForProducts + kStore, 1)
        .count(memory, {sums.address()}, {}, {128})
        .wavefronts;
  };
  EXPECT_EQ(wavefronts_of(kProduct + kProduct) - wavefronts_of(kProduct), 16u + 2u);
}

TEST(Warpgroup, FaultsNameWhatIsMissing) {
  const auto fault = [](const std::string& body, unsigned threads = 128) {
    return fault_of([&] { run(body, {}, threads); });
  };
  const auto expect = [&](const std::string& body, const std::string& text) {
    const std::string found = fault(body);
    EXPECT_NE(found.find(text), found.npos) << body << "found: " << found;
  };
  const std::string rest = kFence + kProduct + kCommit + kWaitForProducts + kStore;
  expect("bar.sync 0;\n" + rest, "without fence.proxy.async");
  expect("fence.proxy.async.shared::cta;\n" + rest, "race in shared memory");
  expect(kPublish + kProduct + kCommit + kWaitForProducts + kStore, "wgmma without wgmma.fence");
  expect(kPublish + kFence + kProduct + kCommit + kStore, "accessed before wgmma.wait_group");
  expect(kPublish + kFence + kProduct + kCommit + "wgmma.wait_group.sync.aligned 1;\n" + kStore,
         "accessed before wgmma.wait_group");
  expect(kPublish + kFence + kProduct + kWaitForProducts + kStore,
         "accessed before wgmma.wait_group");  // never committed
  expect(kPublish + kFence + "add.f32 %f1, %f1, %f1;\n" + kProduct + kCommit + kWaitForProducts,
         "wgmma without wgmma.fence");
  expect(kPublish + kFence + kProduct + kCommit, "the block ends while wgmma is under way");
  expect(kPublish + kFence + "setp.lt.u32 %q1, %thread, 96; @!%q1 bra $wait;\n" + kProduct + kCommit +
             "$wait:" + kWaitForProducts + kStore,
         "deadlock");
  EXPECT_NE(fault(kPublish + rest, 64).find("less than four warps"), std::string::npos);
}

TEST(Warpgroup, ReadsMustBeDoneBeforeTheNextWrite) {
  const std::string overwrite = "st.shared.v4.u32 [%r2], {%r3, %r3, %r3, %r3};\n";
  run(kPublish + kFence + kProduct + kCommit + kWaitForProducts + "bar.sync 0;\n" + overwrite);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string fault =
        fault_of([&] { run(kPublish + kFence + kProduct + kCommit + overwrite + kWaitForProducts, {.seed = seed}); });
    EXPECT_NE(fault.find("race in shared memory"), fault.npos) << fault << " seed " << seed;
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
