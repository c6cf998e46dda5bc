// SPDX-License-Identifier: Apache-2.0
// Races in global memory between blocks of a launch.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// Of a launch of two blocks of 32 threads on 64 words.
std::string fault_of_blocks(const std::string& body, bool checks_races = true) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(64));
  const TestKernel kernel(
      kThread + "mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 128; add.u64 %rd2, %address, %rd1;" + body, 1);
  return fault_of([&] { kernel.run(memory, {array.address()}, {2}, {32}, {.checks_races = checks_races}); });
}

TEST(BlockRace, BlocksOfALaunchAreNotOrdered) {
  const std::string own = "ld.global.u32 %r2, [%rd2]; st.global.u32 [%rd2], %r2;";
  EXPECT_EQ(fault_of_blocks(own), "");
  const std::string fault = fault_of_blocks(own + "ld.global.u32 %r2, [%p0+252];");  // the last word of block 1
  EXPECT_NE(fault.find("race in global memory: 4 bytes at 0x"), fault.npos) << fault;
  EXPECT_NE(fault.find("252 bytes into a block of 256 bytes of GPU 0, are written by block (1, 0, 0)\n   st.global.u32 "
                       "[%rd2], %r2;\n   and read by block (0, 0, 0)\n   ld.global.u32 %r2, [%p0+252];\n   of the same "
                       "launch of test"),
            fault.npos)
      << fault;
  EXPECT_EQ(fault_of_blocks(own + "ld.global.u32 %r2, [%p0+252];", false), "");
  // A sum without an atomic.
  const std::string begin = "setp.eq.u32 %q1, %thread, 0;";
  EXPECT_NE(
      fault_of_blocks(begin + "@%q1 ld.global.u32 %r2, [%p0]; add.u32 %r2, %r2, 1; @%q1 st.global.u32 [%p0], %r2;"),
      "");
  EXPECT_EQ(fault_of_blocks(begin + "@%q1 red.global.add.u32 [%p0], 1;"), "");
  EXPECT_NE(fault_of_blocks(begin + "@%q1 red.global.add.u32 [%p0], 1; @%q1 ld.global.u32 %r2, [%p0];"), "");
  EXPECT_EQ(fault_of_blocks(begin + "@%q1 red.global.add.u32 [%p0], 1; @%q1 ld.volatile.global.u32 %r2, [%p0];"), "");
  // Blocks write neighbouring bytes of a word.
  EXPECT_EQ(fault_of_blocks(begin + "cvt.u16.u32 %rs1, %r1; cvt.u64.u32 %rd3, %r1; add.u64 %rd3, %rd3, %p0;"
                                    "@%q1 st.global.u8 [%rd3], %rs1;"),
            "");
}

/// Block 0 comes first, and only reads.
TEST(BlockRace, OfAReadBeforeTheWriteOfAnotherBlockIsKnownFromTheSecondLaunchOn) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(32));
  const TestKernel kernel(kThread +
                              "mov.u32 %r1, %ctaid.x; setp.eq.u32 %q1, %r1, 0; @%q1 ld.global.u32 %r2, [%p0]; @!%q1 "
                              "st.global.u32 [%p0], %r1;",
                          1);
  const auto launch = [&] { kernel.run(memory, {array.address()}, {2}, {1}); };
  fault_of(launch);
  EXPECT_NE(fault_of(launch).find("race in global memory"), std::string::npos);
}

class NoPageableMemory : public PageableMemory {
 public:
  Range find(const void* address) override {
    asked.push_back(reinterpret_cast<U64>(address));
    return {};
  }
  std::vector<U64> asked;
};

/// Padding between parameters may hold the address of host memory, whose owner frees it without telling the GPU.
TEST(BlockRace, DoesNotLookUpParametersInPageableMemory) {
  NoPageableMemory pageable;
  GlobalMemory memory(false, &pageable);
  DeviceArray<U32> array(memory, numbered(32));
  const U64 unrelated = reinterpret_cast<U64>(&memory);
  TestKernel(kThread + "st.global.u32 [%address], %thread;", 2).run(memory, {array.address(), unrelated}, {}, {32});
  EXPECT_TRUE(pageable.asked.empty());
}

TEST(BlockRace, OfAPlainWriteWithAnotherBlocksAtomicsIsFound) {
  const std::string begin = "setp.eq.u32 %q1, %r1, 0;";
  EXPECT_NE(fault_of_blocks(begin + "@%q1 st.global.u32 [%p0], 1; red.global.add.u32 [%p0], 1;"), "");
}

TEST(BlockRace, FencesForTheGpuOrderBlocks) {
  // Each block leaves its part, and counts in the first word; the last thread of all reads what block 0 left.
  const auto sum = [](const std::string& fence) {
    return "setp.ne.u32 %q2, %thread, 0; @%q2 st.global.u32 [%rd2], %thread;" + fence +
           "bar.sync 0; atom.global.inc.u32 %r2, [%p0], 1000; setp.eq.u32 %q1, %r2, 63;" + fence +
           "@%q1 ld.global.u32 %r3, [%p0+4];";
  };
  EXPECT_NE(fault_of_blocks(sum("fence.acq_rel.cta;")).find("race in global memory"), std::string::npos);
  EXPECT_EQ(fault_of_blocks(sum("membar.gl;")), "");
}

/// Each thread of many blocks writes words that are not next to each other.
TEST(BlockRace, TheLogOfALaunchHasABound) {
  constexpr unsigned kBlocks = 64;
  constexpr std::size_t kBytes = std::size_t{1} << 16;
  for (const unsigned threads : {1u, 3u}) {
    GlobalMemory memory;
    const DeviceArray<U32> array(memory, numbered(kBlocks * 64));
    const TestKernel kernel(kThread +
                                "mov.u32 %r1, %ctaid.x; mad.lo.u32 %r1, %r1, 32, %thread; mul.wide.u32 %rd1, %r1, 8;"
                                "add.u64 %rd1, %rd1, %p0; st.global.u32 [%rd1], %thread; ld.global.u32 %r2, [%rd1];",
                            1);
    const auto size = [&](std::size_t most_race_bytes) {
      AccessLog log;
      kernel.run(memory, {array.address()}, {kBlocks}, {32}, {.threads = threads, .most_race_bytes = most_race_bytes},
                 0, 0, &log);
      return log.size() * sizeof(AccessLog::Access);
    };
    EXPECT_GT(size(std::size_t{1} << 30), 2 * kBytes);
    const std::size_t bounded = size(kBytes);
    EXPECT_GT(bounded, kBytes / 4);
    EXPECT_LE(bounded, kBytes / 2 + 2 * sizeof(AccessLog::Access)) << "half of it, and a range for each instruction";
  }
}

/// Of what blocks publish to each other, too: what is not known counts as ordered.
TEST(BlockRace, ABoundOfTheLogReportsNothing) {
  const std::string body =
      kThread +
      "setp.ne.u32 %q1, %thread, 0; @%q1 ret; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd1, %r1, 4;"
      "add.u64 %rd2, %p0, %rd1; mov.u32 %r5, 0; mov.u32 %r7, 0;"
      "$again: st.global.u32 [%rd2+512], %r5; membar.gl; atom.global.add.u32 %r2, [%p0], 1; membar.gl;"
      "add.u32 %r7, %r7, 1; setp.lt.u32 %q2, %r7, 4; @%q2 bra $again;"
      "setp.ne.u32 %q3, %r2, 127; @%q3 ret; mov.u64 %rd3, %p0; mov.u32 %r4, 0;"
      "$sum: ld.global.u32 %r3, [%rd3+512]; add.u64 %rd3, %rd3, 4; add.u32 %r4, %r4, 1; setp.lt.u32 %q4, %r4, 32;"
      "@%q4 bra $sum;";
  const TestKernel kernel(body, 1);
  for (std::size_t bytes = 0; bytes < 16384; bytes += bytes < 2048 ? 64 : 512) {
    GlobalMemory memory;
    const DeviceArray<U32> array(memory, std::vector<U32>(256, 0));
    EXPECT_EQ(fault_of([&] {
                for (int i = 0; i < 2; ++i)
                  kernel.run(memory, {array.address()}, {32}, {32}, {.most_race_bytes = bytes});
              }),
              "")
        << bytes << " bytes";
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
