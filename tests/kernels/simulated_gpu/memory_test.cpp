// SPDX-License-Identifier: Apache-2.0
// Loads, stores and atomics; and what is a fault: bounds, alignment, reads of what was not written, races.
#include <gtest/gtest.h>

#include <cstring>

#include "kernels/simulated_gpu/machine/fault_report.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

void run_on(const std::vector<U32>& words, const std::string& body, unsigned threads = 32,
            std::vector<U32>* result = nullptr, const ExecutionOptions& options = {},
            std::size_t dynamic_shared_bytes = 0) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, words);
  TestKernel(kThread + body, 1).run(memory, {array.address()}, {}, {threads}, options, dynamic_shared_bytes);
  if (result != nullptr) *result = array.values();
}

#define EXPECT_FAULT(text, words, ...)                                       \
  do {                                                                       \
    const std::string fault = fault_of([&] { run_on(words, __VA_ARGS__); }); \
    EXPECT_NE(fault.find(text), fault.npos) << "found: '" << fault << "'";   \
  } while (false)

TEST(Memory, OfAnotherGpuIsNotReached) {
  GlobalMemory memory;
  DeviceArray<U32> own(memory, 32), other(memory, numbered(32), 1);
  const TestKernel kernel(kThread + "ld.global.u32 %r1, [%p1]; st.global.u32 [%address], %r1;", 2);
  const std::string fault = fault_of([&] { kernel.run(memory, {own.address(), other.address()}, {}, {32}); });
  EXPECT_NE(fault.find("global memory is read by a kernel of GPU 0, which cannot reach it: 4 bytes at "), fault.npos)
      << fault;
  EXPECT_NE(fault.find("of GPU 1"), fault.npos) << fault;
}

TEST(Memory, LoadsExtendToTheRegister) {
  std::vector<U32> result;
  run_on({0x8180ff80, 0, 0},
         "ld.global.u8 %rs1, [%p0+3]; ld.global.s8 %r2, [%p0]; cvt.u32.u16 %r1, %rs1;"
         "st.global.u32 [%p0+4], %r1; st.global.u32 [%p0+8], %r2;",
         1, &result);
  EXPECT_EQ(result, (std::vector<U32>{0x8180ff80, 0x81, 0xffffff80}));
}

TEST(Memory, VectorsKeepTheirOrder) {
  std::vector<U32> result;
  run_on(
      numbered(128),
      "shl.b32 %r1, %thread, 4; cvt.u64.u32 %rd1, %r1; add.u64 %rd1, %rd1, %p0;"
      "mov.u32 %r2, 7; ld.global.nc.v4.u32 {%r1, _, %r3, %r4}, [%rd1]; st.global.v4.u32 [%rd1], {%r4, %r3, %r2, %r1};",
      32, &result);
  for (U32 i = 0; i < 32; ++i) {
    EXPECT_EQ(result[4 * i], 4 * i + 3);
    EXPECT_EQ(result[4 * i + 2], 7u);
    EXPECT_EQ(result[4 * i + 3], 4 * i);
  }
}

TEST(Memory, GenericAddressesReachEverySpace) {
  std::vector<U32> result;
  run_on(numbered(64),
         ".shared .align 8 .b8 shared[256]; .local .align 4 .b8 local[8];\n"
         "mov.u64 %rd1, shared; cvta.shared.u64 %rd1, %rd1; mul.wide.u32 %rd2, %thread, 4; add.u64 %rd1, %rd1, %rd2;\n"
         "mov.u64 %rd3, local; cvta.local.u64 %rd3, %rd3;\n"
         // Even lanes use shared memory, odd ones local memory, through the same instructions.
         "and.b32 %r1, %thread, 1; setp.eq.u32 %q1, %r1, 0; selp.b64 %rd4, %rd1, %rd3, %q1;\n"
         "add.u32 %r2, %thread, 500; st.u32 [%rd4+4], %r2; ld.u32 %r3, [%rd4+4]; st.u32 [%address], %r3;\n"
         "cvta.to.shared.u64 %rd5, %rd1; cvt.u32.u64 %r4, %rd5; @%q1 ld.shared.u32 %r5, [%r4+4]; @%q1 st.global.u32 "
         "[%address+128], %r5;",
         32, &result);
  for (U32 lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(result[lane], lane + 500);
    EXPECT_EQ(result[32 + lane], lane % 2 == 0 ? lane + 500 : lane + 32);
  }
}

TEST(Memory, ParametersAreReadByAddressToo) {
  std::vector<U32> result;
  run_on({0, 0},
         "mov.b64 %rd1, p0; ld.param.u32 %r1, [%rd1+4]; cvta.param.u64 %rd2, %rd1; ld.u64 %rd3, [%rd2];"
         "shr.u64 %rd3, %rd3, 32; cvt.u32.u64 %r2, %rd3; st.global.v2.u32 [%p0], {%r1, %r2};",
         1, &result);
  EXPECT_EQ(result[0], result[1]);
  EXPECT_NE(result[0], 0u);
}

TEST(Memory, AtomicsOfAllLanesAddUp) {
  std::vector<U32> result;
  run_on({0, 100, 0, 7, 0, 5},
         "atom.global.add.u32 %r1, [%p0], %thread; red.global.max.u32 [%p0+4], %thread; mov.f32 %f1, 0f3F800000;"
         "atom.global.add.f32 %f2, [%p0+8], %f1; atom.global.cas.b32 %r2, [%p0+12], 7, 9; atom.global.inc.u32 %r3, "
         "[%p0+16], 9;"
         "atom.global.exch.b32 %r4, [%p0+20], 5;",
         64, &result);
  EXPECT_EQ(result, (std::vector<U32>{64 * 63 / 2, 100, 0x42800000, 9, 64 % 10, 5}));
}

TEST(Memory, SharedAtomicsNeedNoBarrierAmongThemselves) {
  std::vector<U32> result;
  run_on({0},
         ".shared .align 4 .b8 sum[4]; mov.u32 %r1, sum; setp.eq.u32 %q1, %thread, 0; @%q1 st.shared.u32 [%r1], 0; "
         "bar.sync 0;"
         "atom.shared.add.u32 %r2, [%r1], 1; bar.sync 0; ld.shared.u32 %r3, [%r1]; @%q1 st.global.u32 [%p0], %r3;",
         100, &result);
  EXPECT_EQ(result[0], 100u);
}

TEST(MemoryFault, GlobalBoundsNameTheBlock) {
  EXPECT_FAULT("global memory is read out of bounds: 4 bytes at 0x", numbered(31), "ld.global.u32 %r1, [%address];");
  EXPECT_FAULT("0 bytes behind the end of a block of 124 bytes of GPU 0, by thread (31, 0, 0) of block (0, 0, 0)",
               numbered(31), "ld.global.u32 %r1, [%address];");
  EXPECT_FAULT("global memory is written out of bounds", numbered(8), "st.global.u32 [%p0+-4], %thread;", 1);
}

TEST(MemoryFault, FreedBlocksAreNamed) {
  GlobalMemory memory;
  auto array = std::make_unique<DeviceArray<U32>>(memory, numbered(4));
  const U64 address = array->address();
  const DeviceArray<U32> other(memory, numbered(4));
  array.reset();
  const std::string fault =
      fault_of([&] { TestKernel(kThread + "ld.global.u32 %r1, [%p0+4];", 1).run(memory, {address}, {}, {1}); });
  EXPECT_NE(fault.find("4 bytes into a block of 16 bytes of GPU 0 that was freed"), fault.npos) << fault;
}

TEST(MemoryFault, AlignmentIsThatOfTheWholeAccess) {
  EXPECT_FAULT("misaligned address in global memory: 8 bytes", numbered(8), "ld.global.v2.u32 {%r1, %r2}, [%p0+4];", 1);
  EXPECT_FAULT("misaligned address in shared memory: 4 bytes at 1026", numbered(1),
               ".shared .align 4 .b8 words[8]; mov.u32 %r1, words; st.shared.u32 [%r1+2], %r1;", 1);
}

TEST(MemoryFault, ReadsOfWhatWasNotWritten) {
  GlobalMemory memory;
  DeviceArray<U32> fresh(memory, 32);
  const TestKernel kernel(
      kThread + "setp.ne.u32 %q1, %thread, 9; @%q1 st.global.u32 [%address], %thread; ld.global.u32 %r1, [%address];",
      1);
  const std::string fault = fault_of([&] { kernel.run(memory, {fresh.address()}, {}, {32}); });
  EXPECT_NE(fault.find("global memory is read before it is written: 4 bytes"), fault.npos) << fault;
  EXPECT_NE(fault.find("by thread (9, 0, 0)"), fault.npos) << fault;
  EXPECT_FAULT(
      "shared memory is read before it is written: 4 bytes at 1028", numbered(1),
      ".shared .align 4 .b8 words[8]; mov.u32 %r1, words; st.shared.u32 [%r1], %r1; ld.shared.u32 %r2, [%r1+4];", 1);
}

TEST(MemoryFault, SharedMemoryIsUnwrittenInEachBlock) {
  GlobalMemory memory;
  const TestKernel kernel(
      kThread +
          ".shared .align 4 .b8 words[8]; mov.u32 %r1, words; mov.u32 %r2, %ctaid.x; setp.eq.u32 %q1, %r2, 0;"
          "@%q1 st.shared.u32 [%r1], %r1; ld.shared.u32 %r2, [%r1];",
      1);
  const std::string fault = fault_of([&] { kernel.run(memory, {0}, {2}, {1}); });
  EXPECT_NE(fault.find("of block (1, 0, 0)"), fault.npos) << fault;
}

TEST(MemoryFault, SharedBoundsIncludeDynamicMemory) {
  const std::string body = ".shared .align 4 .b8 words[8]; mov.u32 %r1, words; st.shared.u32 [%r1+16], %r1;";
  run_on(numbered(1), body, 1, nullptr, {}, 12);
  EXPECT_FAULT("shared memory is written out of bounds: 4 bytes at 1040; expected 1024 to 1040", numbered(1), body, 1,
               nullptr, {}, 8);
}

TEST(Watch, NamesWhoWroteLast) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(64));
  const TestKernel kernel(
      kThread +
          "st.global.u32 [%address], %thread; xor.b32 %r1, %thread, 32; mul.wide.u32 %rd1, %r1, 4;"
          "add.u64 %rd1, %rd1, %p0; setp.eq.u32 %q1, %thread, 40; @%q1 red.global.add.u32 [%rd1], 7;",
      1);
  memory.watch().begin(array.address() + 4 * 8 + 2, 1);  // a part of word 8
  kernel.run(memory, {array.address()}, {}, {64});
  EXPECT_EQ(memory.watch().writes().count, 2u);
  EXPECT_EQ(memory.watch().writes().last,
            "thread (40, 0, 0) of block (0, 0, 0)\n   in test\n   @%q1 red.global.add.u32 [%rd1], 7;");
  memory.watch().begin(array.address() + 256, 4);  // behind the array
  kernel.run(memory, {array.address()}, {}, {64});
  EXPECT_EQ(memory.watch().writes().count, 0u) << memory.watch().writes().last;
}

TEST(Fault, NamesFilesAsInTheRepository) {
  EXPECT_EQ(path_in_repository("/kernels/build/release/../../kernels/ops/gemm/7_mma.cu"), "kernels/ops/gemm/7_mma.cu");
  EXPECT_EQ(path_in_repository("/src/tests/kernels/simt/number_kernels.cu"), "tests/kernels/simt/number_kernels.cu");
  EXPECT_EQ(path_in_repository("/usr/local/cuda/include/cuda_fp16.hpp"), "/usr/local/cuda/include/cuda_fp16.hpp");
}

const std::string kWord =
    ".shared .align 4 .b8 words[512]; mov.u32 %r1, words; shl.b32 %r2, %thread, 2; add.u32 %r2, %r2, %r1;";

TEST(Race, AReadIsNotOrderedAfterAnotherThreadsWrite) {
  const std::string body = kWord + "st.shared.u32 [%r2], %thread; xor.b32 %r3, %r2, 128; ld.shared.u32 %r4, [%r3];";
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string fault = fault_of([&] { run_on(numbered(64), body, 64, nullptr, {.seed = seed}); });
    EXPECT_TRUE(fault.find("race in shared memory") != fault.npos ||
                fault.find("read before it is written") != fault.npos)
        << seed << fault;
  }
  run_on(numbered(64), kWord + "st.shared.u32 [%r2], %thread; ld.shared.u32 %r4, [%r2];", 64);  // its own word
}

TEST(Race, AWriteIsNotOrderedAfterAnotherThreadsRead) {
  const std::string body =
      kWord + "st.shared.u32 [%r2], %thread; bar.sync 0; xor.b32 %r3, %r2, 128; ld.shared.u32 %r4, [%r3];";
  EXPECT_FAULT("without a barrier in between", numbered(64), body + "st.shared.u32 [%r2], %r4;", 64);
  run_on(numbered(64), body + "bar.sync 0; st.shared.u32 [%r2], %r4;", 64);
  // Many threads read the word that one of them writes.
  const std::string broadcast =
      kWord + "st.shared.u32 [%r2], %thread; bar.sync 0; ld.shared.u32 %r4, [%r1]; setp.eq.u32 %q1, %thread, 5;";
  EXPECT_FAULT("4 bytes at 1024 are written, and were read by several threads of a warp", numbered(64),
               broadcast + "@%q1 st.shared.u32 [%r1], %r4;", 64);
  run_on(numbered(64), broadcast + "bar.sync 0; @%q1 st.shared.u32 [%r1], %r4;", 64);
}

TEST(Race, LanesOfAWarpNeedAWarpBarrier) {
  const std::string write = kWord + "st.shared.u32 [%r2], %thread;",
                    read = "xor.b32 %r3, %r2, 4; ld.shared.u32 %r4, [%r3];";
  EXPECT_FAULT("race in shared memory", numbered(64), write + read, 64);
  run_on(numbered(64), write + "bar.warp.sync 0xffffffff;" + read, 64);
  run_on(numbered(64),
         write + "bar.warp.sync 0xffffffff;" + read + "bar.warp.sync 0xffffffff; st.shared.u32 [%r2], %thread;", 64);
  // A warp barrier does not order warps.
  const std::string other_warp =
      "bar.warp.sync 0xffffffff; setp.gt.u32 %q1, %thread, 31; @%q1 ld.shared.u32 %r4, [%r1];";
  EXPECT_FAULT("race in shared memory", numbered(64), write + other_warp, 64);
}

TEST(Race, NamedBarriersOrderTheirWarpsAlone) {
  // Every warp reads the first word; then warps 0 and 1 meet, and a thread of warp 0 writes it.
  const std::string begin =
      kWord + "st.shared.u32 [%r2], %thread; bar.sync 0; shr.u32 %r5, %thread, 5; setp.lt.u32 %q1, %r5, 2;\n";
  const std::string write = "@%q1 bar.sync 1, 64; setp.eq.u32 %q2, %thread, 5; @%q2 st.shared.u32 [%r1], %r4;";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const ExecutionOptions options{.seed = seed};
    run_on(numbered(96), begin + "@%q1 ld.shared.u32 %r4, [%r1];" + write, 96, nullptr, options);
    EXPECT_FAULT("race in shared memory", numbered(96), begin + "ld.shared.u32 %r4, [%r1];" + write, 96, nullptr,
                 options);
  }
}

TEST(Race, AtomicsAreUnorderedWithPlainAccesses) {
  const std::string begin = kWord + "setp.eq.u32 %q1, %thread, 0; @%q1 st.shared.u32 [%r1], 0; bar.sync 0;\n";
  const std::string add = "red.shared.add.u32 [%r1], 1;", read = "ld.shared.u32 %r4, [%r1];";
  run_on(numbered(64), begin + add + "bar.sync 0;" + read, 64);
  EXPECT_FAULT("race in shared memory", numbered(64), begin + add + read, 64);
  EXPECT_FAULT("race in shared memory", numbered(64), begin + read + add, 64);
  EXPECT_FAULT("race in shared memory", numbered(64), begin + add + "@%q1 st.shared.u32 [%r1], 0;", 64);
}

TEST(Race, LanesThatWereOrderedAreNotSeveral) {
  // Two lanes read a word one after the other; the second writes it, while another warp is busy.
  const std::string body = kWord +
                           "st.shared.u32 [%r2], %thread; bar.sync 0; setp.eq.u32 %q1, %thread, 3; setp.eq.u32 %q2, "
                           "%thread, 4;\n"
                           "setp.gt.u32 %q3, %thread, 31; @%q3 ld.shared.u32 %r4, [%r2];\n"
                           "@%q1 ld.shared.u32 %r4, [%r1]; bar.warp.sync 0xffffffff; @%q2 ld.shared.u32 %r4, [%r1];\n";
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    run_on(numbered(64), body + "@%q2 st.shared.u32 [%r1], %r4;", 64, nullptr, {.seed = seed});
  EXPECT_FAULT("race in shared memory", numbered(64), body + "@%q1 st.shared.u32 [%r1], %r4;", 64);
}

TEST(Race, IsNotLookedForIfNotAsked) {
  run_on(numbered(32), kWord + "st.shared.u32 [%r2], %thread; xor.b32 %r3, %r2, 4; ld.shared.u32 %r4, [%r3];", 32,
         nullptr, {.checks_races = false});
}

TEST(Counters, SectorsAndWavefrontsAgainstTheLeast) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(32 * 33));
  const TestKernel kernel(kThread +
                              ".shared .align 4 .b8 words[4096]; mov.u32 %r1, words;\n"
                              "mul.wide.u32 %rd1, %thread, 128; add.u64 %rd1, %rd1, %p0; ld.global.u32 %r2, [%rd1];\n"
                              "shl.b32 %r3, %thread, 7; add.u32 %r3, %r3, %r1; st.shared.u32 [%r3], %r2;\n"
                              "ld.shared.u32 %r5, [%r3]; ld.global.u16 %rs1, [%p0];",
                          1);
  const Counters counters = kernel.run(memory, {array.address()}, {}, {32});
  const auto& load = counters.instructions[kernel.index_of("ld.global.u32")];
  EXPECT_EQ(load.sectors, 32u);
  EXPECT_EQ(load.least_sectors, 4u);
  EXPECT_EQ(load.bytes, 128u);
  const auto& store = counters.instructions[kernel.index_of("st.shared.u32")];
  EXPECT_EQ(store.wavefronts, 32u);
  EXPECT_EQ(store.least_wavefronts, 1u);
  EXPECT_EQ(counters.instructions[kernel.index_of("ld.global.u16")].sectors, 1u);
}

TEST(Launch, RejectsWhatTheKernelIsNotFor) {
  GlobalMemory memory;
  const TestKernel kernel("", 1, ".maxntid 64, 1, 1");
  EXPECT_NE(fault_of([&] { kernel.run(memory, {0}, {}, {65}); }).find("expected 1 to 64"), std::string::npos);
  EXPECT_NE(fault_of([&] { kernel.run(memory, {}, {}, {64}); }).find("the parameters have 0 bytes; expected 8"),
            std::string::npos);
}

TEST(Translation, NamesEachInstructionThatIsNotKnown) {
  const std::string fault =
      fault_of([] { TestKernel(".reg .f32 %f<3>; add.rn.bogus.f32 %f1, %f1, %f2; frobnicate.u32 %f1;", 0); });
  EXPECT_NE(fault.find("modifier .bogus is not supported here: add.rn.bogus.f32 %f1, %f1, %f2;"), fault.npos) << fault;
  EXPECT_NE(fault.find("the instruction is not known: frobnicate.u32 %f1;"), fault.npos) << fault;
  const std::string often = fault_of([] {
    TestKernel(".reg .f32 %f<3>; frobnicate.u32 %f1; frobnicate.u32 %f2; frobnicate.u64 %f1; frobnicate.u32 %f1;", 0);
  });
  EXPECT_TRUE(
      often.ends_with("frobnicate.u32 %f1; (3 times frobnicate.u32)\n   the instruction is not known: "
                      "frobnicate.u64 %f1;"))
      << often;
}

}  // namespace
}  // namespace gradring::simulated_gpu
