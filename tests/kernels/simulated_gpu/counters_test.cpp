// SPDX-License-Identifier: Apache-2.0
// Counters of launches, for kernels whose counts can be made by hand.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/simulated_gpu/cards/card.h"
#include "kernels/simulated_gpu/counters/summary.h"
#include "kernels/simulated_gpu/machine/fault_report.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// One for the parameter (a move); %thread is the index within the grid, %address its word.
const std::string kGridThread =
    ".reg .b32 %thread; .reg .b64 %address; .reg .pred %q<9>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .b64 %rd<9>;\n"
    "mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %thread, %r2, %r3, %r1;\n"
    "mul.wide.u32 %address, %thread, 4; add.u64 %address, %address, %p0;\n";
constexpr std::uint64_t kMovesOfThread = 4, kIntegersOfThread = 3;  ///< of a warp

LaunchCounts counts_of(const std::string& body, Extent grid, Extent block, std::size_t words = 1 << 14,
                       std::string_view card = "h100", const std::optional<ptx::CompiledKernel>& code = {}) {
  GlobalMemory memory;
  const DeviceArray<U32> array(memory, std::vector<U32>(words, 1));
  return TestKernel(kGridThread + body, 1).count(memory, {array.address()}, grid, block, card, code);
}

std::uint64_t executed(const LaunchCounts& counts, InstructionClass own) {
  return counts.warp_instructions[static_cast<std::size_t>(own)];
}

TEST(LaunchCounters, AreThoseOfEachWarp) {
  const LaunchCounts counts = counts_of(
      "ld.global.u32 %r4, [%address]; cvt.rn.f32.u32 %f1, %r4; fma.rn.f32 %f1, %f1, %f1, %f1; ex2.approx.f32 %f1, %f1;"
      "setp.lt.f32 %q1, %f1, 0f40000000; popc.b32 %r4, %r4; st.global.f32 [%address], %f1;",
      {3}, {64});
  const std::uint64_t warps = 6;
  EXPECT_EQ(counts.warps, warps);
  EXPECT_EQ(counts.blocks, 3u);
  EXPECT_EQ(executed(counts, InstructionClass::move), kMovesOfThread * warps);
  EXPECT_EQ(executed(counts, InstructionClass::integer), kIntegersOfThread * warps);
  EXPECT_EQ(executed(counts, InstructionClass::load_store), 2 * warps);
  for (const auto own : {InstructionClass::conversion, InstructionClass::fp32, InstructionClass::special,
                         InstructionClass::comparison, InstructionClass::bit_count, InstructionClass::control})
    EXPECT_EQ(executed(counts, own), warps) << kInstructionClassNames[static_cast<std::size_t>(own)];
  EXPECT_EQ(executed(counts, InstructionClass::other), 0u);
  EXPECT_EQ(counts.all_warp_instructions(), (kMovesOfThread + kIntegersOfThread + 8) * warps);
  EXPECT_EQ(counts.thread_instructions, 32 * counts.all_warp_instructions());
  EXPECT_EQ(counts.barriers, 0u);
}

TEST(LaunchCounters, HaveFourSectorsOfACoalescedRequest) {
  const LaunchCounts counts =
      counts_of("ld.global.u32 %r4, [%address]; st.global.u32 [%address+32768], %r4;", {2}, {64});
  for (const MemoryCounts& memory : {counts.loads, counts.stores}) {
    EXPECT_EQ(memory.requests, 4u);
    EXPECT_EQ(memory.sectors_per_request(), 4);
    EXPECT_EQ(memory.least_sectors_per_request(), 4);
    EXPECT_EQ(memory.bytes, 4 * 128u);
  }
  EXPECT_EQ(counts.distinct_read_bytes, 4 * 128u);
  EXPECT_EQ(counts.distinct_written_bytes, 4 * 128u);
}

TEST(LaunchCounters, HaveASectorOfEachStridedLane) {
  const LaunchCounts counts = counts_of(
      "shl.b32 %r4, %thread, 7; cvt.u64.u32 %rd1, %r4; add.u64 %rd1, %rd1, %p0; ld.global.u32 %r5, [%rd1];", {1}, {64});
  EXPECT_EQ(counts.loads.sectors_per_request(), 32);
  EXPECT_EQ(counts.loads.least_sectors_per_request(), 4);
  EXPECT_EQ(counts.distinct_read_bytes, 64 * 32u);
}

TEST(LaunchCounters, CountDistinctBytesOnce) {
  const LaunchCounts counts = counts_of(
      "ld.global.u32 %r4, [%p0]; ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%p0+16]; atom.global.add.u32 %r4, [%p0+64], "
      "1;",
      {10}, {32});
  EXPECT_EQ(counts.loads.requests, 20u);
  EXPECT_EQ(counts.loads.sectors, 20u);
  EXPECT_EQ(counts.atomics.requests, 10u);
  EXPECT_EQ(counts.distinct_read_bytes, 64u) << "those of the atomic, too";
  EXPECT_EQ(counts.distinct_written_bytes, 32u);
}

TEST(LaunchCounters, HaveAWavefrontForEachWordOfABank) {
  const auto with_stride = [](int shift) {
    return counts_of(".shared .align 16 .b8 words[4096]; mov.u32 %r4, words; shl.b32 %r5, %r1, " +
                         std::to_string(shift) +
                         "; add.u32 %r4, %r4, %r5; st.shared.u32 [%r4], %r5; bar.sync 0; ld.shared.u32 %r6, [%r4];",
                     {2}, {32});
  };
  for (const auto& [shift, ways] : {std::pair(2, 1u), std::pair(3, 2u), std::pair(5, 8u), std::pair(7, 32u)}) {
    const LaunchCounts counts = with_stride(shift);
    EXPECT_EQ(counts.shared_requests, 4u);
    EXPECT_EQ(counts.wavefronts, 4 * ways) << "stride " << (1 << shift);
    EXPECT_EQ(counts.least_wavefronts, 4u);
    EXPECT_EQ(counts.barriers, 2u);
    EXPECT_EQ(counts.loads.requests, 0u) << "not of global memory";
  }
}

TEST(LaunchCounters, HaveWavefrontsOfEightRowsOfAFragment) {
  const auto with_stride = [](int halves) {
    return counts_of(
        ".shared .align 128 .b8 tile[2048]; .reg .b64 %z; mov.u64 %z, 0;\n"
        "mov.u32 %r4, tile; shl.b32 %r5, %r1, 4; add.u32 %r5, %r5, %r4;\n"
        "st.shared.v2.u64 [%r5], {%z, %z}; st.shared.v2.u64 [%r5+512], {%z, %z}; bar.sync 0;\n"
        "wmma.load.a.sync.aligned.m16n16k16.row.shared.f16 {%r1, %r2, %r3, %r5, %r6, %r7, %r8, %r0}, [%r4], " +
            std::to_string(halves) + ";",
        {1}, {32});
  };
  constexpr std::uint64_t kOfStores = 8;
  // 16 bytes of eight rows: at 48 bytes of stride they are in all banks, at 32 bytes in half of them.
  EXPECT_EQ(with_stride(24).wavefronts, kOfStores + 4);
  EXPECT_EQ(with_stride(16).wavefronts, kOfStores + 8);
  EXPECT_EQ(with_stride(16).least_wavefronts, kOfStores + 4);
}

TEST(LaunchCounters, CountTheLanesOfDivergentWarps) {
  const LaunchCounts counts = counts_of(
      "setp.ge.u32 %q1, %r1, 8; @%q1 bra $end; add.u32 %r4, %r4, 1; add.u32 %r4, %r4, 1; add.u32 %r4, %r4, 1;\n$end:",
      {1}, {32});
  const std::uint64_t whole = kMovesOfThread + kIntegersOfThread + 2;  // setp, ret
  EXPECT_EQ(counts.all_warp_instructions(), whole + 1 + 3);
  EXPECT_EQ(counts.thread_instructions, 32 * whole + 24 + 3 * 8) << "the branch is taken by 24";
}

TEST(LaunchCounters, CountAsynchronousCopies) {
  const LaunchCounts counts = counts_of(
      ".shared .align 16 .b8 tile[512]; mov.u32 %r4, tile; shl.b32 %r5, %r1, 4; add.u32 %r4, %r4, %r5;\n"
      "mul.wide.u32 %rd1, %r1, 16; add.u64 %rd1, %rd1, %p0; setp.lt.u32 %q1, %r1, 8; selp.u32 %r6, 16, 0, %q1;\n"
      "cp.async.cg.shared.global [%r4], [%rd1], 16; cp.async.wait_all;\n"
      "cp.async.cg.shared.global [%r4], [%rd1], 16, %r6; cp.async.wait_all;",
      {1}, {32});
  EXPECT_EQ(counts.loads.requests, 2u);
  EXPECT_EQ(counts.loads.sectors, 16u + 4u) << "the second one reads 8 lanes, and fills the others with zeros";
  EXPECT_EQ(counts.distinct_read_bytes, 512u);
  EXPECT_EQ(counts.wavefronts, 8u);
  EXPECT_EQ(executed(counts, InstructionClass::synchronization), 2u);
}

/// Rows of four vectors of 16 bytes, as the kernels have them that an H200 counted (docs/counters.md).
TEST(LaunchCounters, CountCopiesByTheirAddressInSharedMemory) {
  struct Row {
    const char *pitch, *start;  ///< of rows in shared memory
    std::uint64_t sectors, wavefronts;
  };
  for (const Row& row : {Row{"64", "0", 16, 4}, Row{"64", "16", 20, 4}, Row{"80", "0", 20, 4}, Row{"5120", "0", 16, 8},
                         Row{"5120", "16", 24, 8}}) {
    const LaunchCounts counts = counts_of(
        ".shared .align 128 .b8 tile[40960]; mov.u32 %r4, tile; and.b32 %r5, %r1, 3; shl.b32 %r5, %r5, 4;\n"
        "add.u32 %r4, %r4, %r5; shr.u32 %r5, %r1, 2; mad.lo.u32 %r4, %r5, " +
            std::string(row.pitch) + ", %r4; mul.wide.u32 %rd1, %r1, 16; add.u64 %rd1, %rd1, %p0;\n" +
            "cp.async.cg.shared.global [%r4+" + row.start + "], [%rd1], 16; cp.async.wait_all;",
        {1}, {32});
    EXPECT_EQ(counts.loads.sectors, row.sectors) << row.pitch << ", " << row.start;
    EXPECT_EQ(counts.loads.least_sectors_per_request(), 16);
    EXPECT_EQ(counts.wavefronts, row.wavefronts) << row.pitch << ", " << row.start;
  }
}

TEST(LaunchCounters, CountTensorOperations) {
  const LaunchCounts counts = counts_of(
      ".reg .f32 %d<4>; .reg .b32 %a<4>; .reg .b32 %b<2>;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%b0, %b1}, {%d0, "
      "%d1, %d2, %d3};\n"
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0}, {%d0, %d1, %d2, %d3};",
      {5}, {64});
  EXPECT_EQ(executed(counts, InstructionClass::tensor), 20u);
  EXPECT_EQ(counts.tensor_flops, 10u * (2 * 16 * 8 * 16 + 2 * 16 * 8 * 8));
}

/// The class of an instruction that is only read.
ptx::Instruction read_instruction(const std::string& text) {
  static std::vector<std::unique_ptr<ptx::Module>> modules;
  modules.push_back(std::make_unique<ptx::Module>(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg "
      ".f32 %f<9>; .reg .f64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<9>;\n" +
      text + "\nret;\n}\n"));
  return modules.back()->kernel("k")->code.front();
}

TEST(InstructionClasses, FollowOpcodeAndType) {
  using enum InstructionClass;
  for (const auto& [text, own] : std::vector<std::pair<const char*, InstructionClass>>{
           {"add.rn.f32 %f1, %f2, %f3;", fp32},
           {"mul.f64 %d1, %d2, %d3;", fp64},
           {"fma.rn.f16x2 %r1, %r2, %r3, %r4;", fp16},
           {"add.bf16 %h1, %h2, %h3;", fp16},
           {"mad.lo.s32 %r1, %r2, %r3, %r4;", integer},
           {"div.rn.f32 %f1, %f2, %f3;", special},
           {"max.f32 %f1, %f2, %f3;", comparison},
           {"ld.param.u64 %rd1, [%rd2];", move},
           {"ld.global.nc.v2.f32 {%f1, %f2}, [%rd1];", load_store},
           {"cp.async.wait_group 1;", synchronization},
           {"cp.async.cg.shared.global [%r1], [%rd1], 16;", load_store},
           {"wgmma.fence.sync.aligned;", synchronization},
           {"bar.warp.sync -1;", synchronization},
           {"shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", warp},
           {"frobnicate.u32 %r1;", other}})
    EXPECT_EQ(class_of(read_instruction(text)), own) << text;
  const auto wgmma = read_instruction(
      "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {%f1, %f2, %f3, %f4, %f5, %f6, %f7, %f8}, %rd1, %rd2, %p1, "
      "1, "
      "1, 0, 0;");
  EXPECT_EQ(class_of(wgmma), tensor);
  EXPECT_EQ(4 * tensor_flops(wgmma), 2u * 64 * 16 * 16) << "four warps together";
}

std::string repeated(const std::string& instruction, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += instruction;
  return text;
}

TEST(TimeBounds, AreThoseOfTheBusiestMultiprocessor) {
  constexpr int kAdds = 61;  // and three integers of kGridThread
  for (const auto& [card, blocks, busiest, clock] :
       {std::tuple("h100", 132u, 1, 1.98e9), std::tuple("h100", 133u, 2, 1.98e9),
        std::tuple("a100", 217u, 3, 1.41e9)}) {
    const TimeBound bound = counts_of(repeated("add.u32 %r4, %r4, 1;", kAdds), {blocks}, {64}, 1 << 14, card).bound;
    EXPECT_EQ(bound.issue_cycles, busiest * 2 * 64 * 32 / 64) << card << ", " << blocks;
    EXPECT_EQ(bound.busiest, "integer");
    EXPECT_DOUBLE_EQ(bound.seconds(), bound.issue_cycles / clock);
    EXPECT_STREQ(bound.limit(), "issue");
  }
}

TEST(TimeBounds, TakeConversionsOfHalvesForAdditions) {
  const std::string body = ".reg .b16 %h; mov.b16 %h, 0;" + repeated("cvt.f32.f16 %f1, %h;", 64);
  for (const char* card : {"a100", "h100"}) {
    const TimeBound bound = counts_of(body, {1}, {64}, 1 << 14, card).bound;
    EXPECT_EQ(bound.issue_cycles, 2 * (kIntegersOfThread + 64 + 1) / 4.0) << card;
    EXPECT_EQ(bound.busiest, "issue") << card;
  }
}

TEST(TimeBounds, FollowBlocksThatDiffer) {
  // Block 7 has 1000 rounds of three instructions, the others none.
  const TimeBound bound = counts_of(
                              "mov.u32 %r5, 0; setp.ne.u32 %q1, %r2, 7; @%q1 bra $end;\n$again: add.u32 %r5, %r5, 1; "
                              "setp.lt.u32 %q2, %r5, 1000; @%q2 bra $again;\n$end:",
                              {264}, {32})
                              .bound;
  // Multiprocessor 7 has blocks 7 and 139: three integers, a comparison, a branch and the end each, and the rounds.
  EXPECT_EQ(bound.issue_cycles, (2 * 6 + 3 * 1000) / 4.0);
  EXPECT_EQ(bound.busiest, "issue");
}

TEST(TimeBounds, AreOfMemoryWhereThatIsMore) {
  const LaunchCounts counts = counts_of("ld.global.u32 %r4, [%address]; st.global.u32 [%address], %r4;", {256}, {64});
  EXPECT_DOUBLE_EQ(counts.bound.memory_seconds, 2 * 65536 / 3.35e12);
  EXPECT_STREQ(counts.bound.limit(), "memory");
}

TEST(LaunchCounters, HaveResourcesOfTheMachineCode) {
  const LaunchCounts known =
      counts_of("", {1000}, {128}, 1, "h100", ptx::CompiledKernel{.registers = 64, .spill_load_bytes = 8});
  ASSERT_TRUE(known.resources);
  EXPECT_EQ(known.resources->registers, 64);
  EXPECT_EQ(known.resources->spill_load_bytes, 8u);
  EXPECT_EQ(known.resident_warps, 32) << "65536 registers";
  EXPECT_EQ(known.grid_warps, 32) << "1000 blocks of four warps on 132 multiprocessors";
  EXPECT_EQ(known.limiter, "registers");
  EXPECT_DOUBLE_EQ(known.waves, 1000 / 8.0 / 132);
  const LaunchCounts unknown = counts_of("", {100}, {128});
  EXPECT_FALSE(unknown.resources);
  EXPECT_EQ(unknown.resident_warps, 64);
  EXPECT_EQ(unknown.grid_warps, 4);
}

TEST(LaunchCounters, NameTheLinesOfTheSource) {
  const ptx::Module module(
      ".version 8.0\n.target sm_90\n.address_size 64\n.file 1 \"/src/build/../kernels/ops/elementwise/1_flat.cu\"\n"
      ".visible .entry k(.param .u64 x) {\n.reg .b32 %r<4>; .reg .b64 %rd<4>;\n.loc 1 20 3\nld.param.u64 %rd1, [x];\n"
      "mov.u32 %r1, %tid.x;\n.loc 1 21 3\nmul.wide.u32 %rd2, %r1, 64;\nadd.s64 %rd1, %rd1, %rd2;\n"
      "ld.global.u32 %r2, [%rd1];\nret;\n}\n");
  const Executable executable(module, *module.kernel("k"));
  GlobalMemory memory;
  const DeviceArray<U32> array(memory, std::vector<U32>(1024, 1));
  alignas(128) const std::uint64_t address = array.address();
  const LaunchSpec spec{.grid = {}, .block = {32}, .parameters = std::as_bytes(std::span(&address, 1))};
  const Counters counters = run(executable, spec, memory, {.counted_multiprocessors = 132});
  const LaunchCounts counts = summary_of({.module = module,
                                          .kernel = executable.kernel(),
                                          .code = {},
                                          .spec = spec,
                                          .counters = counters,
                                          .card = *find_card("h100")},
                                         "k");
  ASSERT_EQ(counts.lines.size(), 2u);
  EXPECT_EQ(counts.lines[0].file, "kernels/ops/elementwise/1_flat.cu");
  EXPECT_EQ(counts.lines[0].line, 20u);
  EXPECT_EQ(counts.lines[0].warp_instructions, 2u);
  EXPECT_EQ(counts.lines[1].warp_instructions, 4u);
  EXPECT_EQ(counts.lines[1].excess_sectors, 28u);
}

TEST(RepositoryPaths, BeginWithTheirPackage) {
  EXPECT_EQ(path_in_repository("/a/b/build/release/../../kernels/lib/register_sums.h"), "kernels/lib/register_sums.h");
  EXPECT_EQ(path_in_repository("kernels/lib/register_sums.h"), "kernels/lib/register_sums.h");
  EXPECT_EQ(path_in_repository("/usr/local/kernels/x/kernels/ops/elementwise/1_flat.cu"),
            "kernels/ops/elementwise/1_flat.cu");
  EXPECT_EQ(path_in_repository("/usr/include/cuda_fp16.hpp"), "/usr/include/cuda_fp16.hpp");
}

}  // namespace
}  // namespace gradring::simulated_gpu
