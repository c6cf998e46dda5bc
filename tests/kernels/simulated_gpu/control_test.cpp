// SPDX-License-Identifier: Apache-2.0
// Divergence, barriers, warp operations, orders of warps.
#include <gtest/gtest.h>

#include "kernels/simulated_gpu/units/fault.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// %address: of the thread's word behind %p0. %thread: its index in the block.
const std::string kThreadIndex =
    ".reg .b32 %thread; .reg .b64 %address; .reg .pred %q<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>;\n"
    "mov.u32 %thread, %tid.x; mul.wide.u32 %address, %thread, 4; add.u64 %address, %address, %p0;\n";

std::vector<U32> words_of(const std::string& body, unsigned threads, const ExecutionOptions& options = {},
                          const std::string& directives = "") {
  GlobalMemory memory;
  DeviceArray<U32> words(memory, threads);
  TestKernel(kThreadIndex + body, 1, directives).run(memory, {words.address()}, {}, {threads}, options);
  return words.values();
}

TEST(Divergence, ThreadsOfAWarpTakeBothSidesOfNestedBranches) {
  const std::vector<U32> words = words_of(
      "setp.lt.u32 %q1, %thread, 16; @%q1 bra $low;\n"
      "setp.lt.u32 %q2, %thread, 24; @%q2 bra $middle; mov.u32 %r1, 3; bra $join;\n"
      "$middle: mov.u32 %r1, 2; bra $join;\n"
      "$low: mov.u32 %r1, 1;\n"
      "$join: add.u32 %r1, %r1, 10; st.global.u32 [%address], %r1;",
      45);
  for (unsigned thread = 0; thread < 45; ++thread)
    EXPECT_EQ(words[thread], thread < 16 ? 11u : thread < 24 ? 12u : 13u);
}

TEST(Divergence, LoopsEndForEachThreadOnItsOwn) {
  const std::vector<U32> words = words_of(
      "mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
      "$next: setp.ge.u32 %q1, %r1, %thread; @%q1 bra $done; add.u32 %r2, %r2, %r1; add.u32 %r1, %r1, 1; bra.uni "
      "$next;\n"
      "$done: st.global.u32 [%address], %r2;",
      64);
  for (unsigned thread = 0; thread < 64; ++thread)
    EXPECT_EQ(words[thread], thread == 0 ? 0 : thread * (thread - 1) / 2);
}

TEST(Divergence, FragmentsAreCountedAndMeetAgain) {
  GlobalMemory memory;
  DeviceArray<U32> words(memory, 32);
  const TestKernel kernel(kThreadIndex +
                              "setp.lt.u32 %q1, %thread, 5; mov.u32 %r1, 0; @!%q1 bra $join;\n"
                              "add.u32 %r1, %r1, 7;\n"
                              "$join: st.global.u32 [%address], %r1;",
                          1);
  const Counters counters = kernel.run(memory, {words.address()}, {}, {32});
  const auto& add = counters.instructions[kernel.index_of("add.u32 %r1")];
  const auto& store = counters.instructions[kernel.index_of("st.global")];
  EXPECT_EQ(add.executions, 1u);
  EXPECT_EQ(add.lanes, 5u);
  EXPECT_EQ(store.executions, 1u);
  EXPECT_EQ(store.lanes, 32u);
  EXPECT_EQ(store.sectors, 4u);
  EXPECT_EQ(store.least_sectors, 4u);
  EXPECT_EQ(counters.warps, 1u);
}

TEST(Divergence, EarlyReturnLeavesTheOthersRunning) {
  const std::vector<U32> words = words_of(
      "mov.u32 %r1, 1; st.global.u32 [%address], %r1; setp.gt.u32 %q1, %thread, 20; @%q1 ret;\n"
      "mov.u32 %r1, 2; st.global.u32 [%address], %r1;",
      40);
  for (unsigned thread = 0; thread < 40; ++thread) EXPECT_EQ(words[thread], thread > 20 ? 1u : 2u);
}

/// Each thread writes shared memory, and after a barrier reads the word of the thread at the other end.
const std::string kReverse =
    ".shared .align 4 .b8 words[1024];\n"
    "mov.u32 %r1, words; shl.b32 %r2, %thread, 2; add.u32 %r3, %r1, %r2; st.shared.u32 [%r3], %thread;\n"
    "bar.sync 0;\n"
    "mov.u32 %r4, %ntid.x; sub.u32 %r4, %r4, %thread; shl.b32 %r4, %r4, 2; add.u32 %r4, %r4, %r1;\n"
    "ld.shared.u32 %r5, [%r4+-4]; st.global.u32 [%address], %r5;";

TEST(Barrier, OrdersSharedMemoryInEveryOrderOfWarps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<U32> words = words_of(kReverse, 200, {.seed = seed});
    for (unsigned thread = 0; thread < 200; ++thread) ASSERT_EQ(words[thread], 199 - thread) << "seed " << seed;
  }
}

TEST(Barrier, ReductionsCountThreadsOfTheBlock) {
  const std::vector<U32> words = words_of(
      "setp.lt.u32 %q1, %thread, 37;\n"
      "bar.red.popc.u32 %r1, 0, %q1; bar.red.and.pred %q2, 0, %q1; bar.red.or.pred %q3, 0, !%q1;\n"
      "selp.u32 %r2, 1000, 0, %q2; selp.u32 %r3, 2000, 0, %q3; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;\n"
      "st.global.u32 [%address], %r1;",
      50);
  EXPECT_EQ(words, std::vector<U32>(50, 2037));
}

TEST(Barrier, IsRejectedToAPartOfAWarp) {
  const std::string text = fault_of([] {
    words_of("setp.lt.u32 %q1, %thread, 16; @%q1 bra $low; bar.sync 0; bra $join; $low: bar.sync 0; $join: ret;", 32);
  });
  EXPECT_NE(text.find("divergent barrier"), text.npos) << text;
  EXPECT_NE(text.find("bar.sync 0;"), text.npos) << text;
  EXPECT_NE(text.find("in test"), text.npos) << text;
}

TEST(Barrier, WarpsArriveWithoutWaiting) {
  // Warp 0 writes and arrives; warp 1 waits for it, and reads.
  const auto body = [](const std::string& arrive) {
    return ".shared .align 4 .b8 shared[128]; mov.u32 %r1, shared; and.b32 %r2, %thread, 31; shl.b32 %r2, %r2, 2;\n"
           "add.u32 %r1, %r1, %r2; setp.gt.u32 %q1, %thread, 31; mov.u32 %r3, 0; @%q1 bra $wait;\n" +
           arrive + "bra $end;\n$wait: barrier.cta.sync.aligned 1, 64; ld.shared.u32 %r3, [%r1];\n" +
           "$end: st.global.u32 [%address], %r3;";
  };
  const std::string store = "add.u32 %r4, %thread, 500; st.shared.u32 [%r1], %r4;";
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<U32> words = words_of(body(store + "barrier.cta.arrive.aligned 1, 64;"), 64, {.seed = seed});
    for (U32 i = 32; i < 64; ++i) ASSERT_EQ(words[i], 500 + i - 32) << seed;
    const std::string late = fault_of([&] { words_of(body("bar.arrive 1, 64;" + store), 64, {.seed = seed}); });
    EXPECT_TRUE(late.find("race in shared memory") != late.npos || late.find("before it is written") != late.npos)
        << late;
  }
}

TEST(Barrier, WithoutAlignmentMayBeReachedByTwoInstructions) {
  const auto body = [](const std::string& barrier) {
    return "setp.lt.u32 %q1, %thread, 7; mov.u32 %r1, 5; @%q1 bra $low; " + barrier + "bra $end;\n$low: " + barrier +
           "$end: st.global.u32 [%address], %r1;";
  };
  EXPECT_EQ(words_of(body("barrier.sync 0;"), 64), std::vector<U32>(64, 5));
  EXPECT_NE(fault_of([&] { words_of(body("barrier.sync.aligned 0;"), 64); }).find("divergent barrier"),
            std::string::npos);
}

TEST(Barrier, IsAFaultIfAThreadHasEnded) {
  const std::string of_the_warp = fault_of([] { words_of("setp.eq.u32 %q1, %thread, 3; @%q1 ret; bar.sync 0;", 32); });
  EXPECT_NE(of_the_warp.find("1 of them ended before"), of_the_warp.npos) << of_the_warp;
  const std::string other_warp = fault_of([] { words_of("setp.gt.u32 %q1, %thread, 31; @%q1 ret; bar.sync 0;", 64); });
  EXPECT_NE(other_warp.find("32 of them ended before"), other_warp.npos) << other_warp;
}

TEST(Barrier, OfSomeWarpsWaitsForTheirThreads) {
  const std::vector<U32> words = words_of(
      ".shared .align 4 .b8 word[4]; mov.u32 %r1, word;\n"
      "setp.ge.u32 %q1, %thread, 64; @%q1 bra $done;\n"
      "setp.eq.u32 %q2, %thread, 63; @%q2 st.shared.u32 [%r1], 42; bar.sync 1, 64; ld.shared.u32 %r2, [%r1];\n"
      "st.global.u32 [%address], %r2; ret;\n"
      "$done: mov.u32 %r2, 7; st.global.u32 [%address], %r2;",
      96);
  for (unsigned thread = 0; thread < 96; ++thread) EXPECT_EQ(words[thread], thread < 64 ? 42u : 7u);
}

TEST(WarpOperation, ShufflesFollowTheSegment) {
  const auto read = [](const std::string& way) {
    return words_of("shfl.sync." + way + ", 0xffffffff; st.global.u32 [%address], %r1;", 32);
  };
  const std::vector<U32> down = read("down.b32 %r1|%q1, %thread, 3, 31"), up = read("up.b32 %r1|%q1, %thread, 3, 0");
  const std::vector<U32> butterfly = read("bfly.b32 %r1, %thread, 5, 31"),
                         halves = read("idx.b32 %r1, %thread, 2, 0x101f");
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(down[lane], lane + 3 < 32 ? lane + 3 : lane);
    EXPECT_EQ(up[lane], lane >= 3 ? lane - 3 : lane);
    EXPECT_EQ(butterfly[lane], lane ^ 5);
    EXPECT_EQ(halves[lane], (lane & 16) + 2);  // segments of 16 lanes
  }
}

TEST(WarpOperation, VotesSeeTheWholeWarp) {
  const std::vector<U32> words = words_of(
      "setp.lt.u32 %q1, %thread, 4; vote.sync.ballot.b32 %r1, %q1, 0xffffffff; vote.sync.any.pred %q2, %q1, "
      "0xffffffff;\n"
      "vote.sync.all.pred %q3, !%q1, 0xffffffff; selp.u32 %r2, 0x100, 0, %q2; selp.u32 %r3, 0x200, 0, %q3;\n"
      "or.b32 %r1, %r1, %r2; or.b32 %r1, %r1, %r3; st.global.u32 [%address], %r1;",
      32);
  EXPECT_EQ(words, std::vector<U32>(32, 0x10f));
}

TEST(WarpOperation, MatchesAndReduces) {
  const std::vector<U32> words = words_of(
      "and.b32 %r1, %thread, 1; match.any.sync.b32 %r2, %r1, 0xffffffff; sub.u32 %r3, %thread, 16;\n"
      "redux.sync.min.s32 %r4, %r3, 0xffffffff; redux.sync.add.s32 %r5, %thread, 0xffffffff; add.u32 %r5, %r5, %r4;\n"
      "xor.b32 %r2, %r2, %r5; st.global.u32 [%address], %r2;",
      32);
  for (unsigned lane = 0; lane < 32; ++lane)
    EXPECT_EQ(words[lane], (lane % 2 == 0 ? 0x55555555u : 0xaaaaaaaau) ^ (31 * 32 / 2 - 16));
}

TEST(WarpOperation, WaitsForLanesThatComeLater) {
  // Lanes 0 to 7 are at the shuffle first; the others come to it through a detour that lies behind it.
  const std::vector<U32> words = words_of(
      "setp.ge.u32 %q1, %thread, 8; mov.u32 %r2, %thread; @%q1 bra $detour;\n"
      "$shuffle: shfl.sync.bfly.b32 %r1, %r2, 31, 31, 0xffffffff; st.global.u32 [%address], %r1; ret;\n"
      "$detour: add.u32 %r2, %r2, 100; bra $shuffle;",
      32);
  for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], (lane ^ 31) >= 8 ? (lane ^ 31) + 100 : lane ^ 31);
}

/// Each half, quarter, ... of a warp has a mask of its own, as cooperative_groups::tiled_partition makes it.
TEST(WarpOperation, GroupsWithMasksOfTheirOwnExecuteOneInstruction) {
  for (const unsigned size : {2u, 4u, 8u, 16u}) {
    GlobalMemory memory;
    DeviceArray<U32> array(memory, numbered(32));
    const std::string bits = std::to_string((1u << size) - 1);
    const std::string first = std::to_string(32 - size);  // lane & first: the first lane of a tile
    TestKernel(kThread + "and.b32 %r1, %thread, " + first + "; mov.u32 %r2, " + bits + "; shl.b32 %r2, %r2, %r1;" +
                   "bar.warp.sync %r2; mov.u32 %r3, %thread; shfl.sync.idx.b32 %r3, %r3, 0, " +
                   std::to_string((32 - size) << 8 | 31) + ", %r2; redux.sync.add.u32 %r4, %thread, %r2;" +
                   "setp.eq.u32 %q1, %thread, 5; vote.sync.ballot.b32 %r5, %q1, %r2; mad.lo.u32 %r3, %r3, 1000, %r4;" +
                   "add.u32 %r3, %r3, %r5; st.global.u32 [%address], %r3;",
               1)
        .run(memory, {array.address()}, {}, {32});
    std::vector<U32> expected(32);
    for (U32 lane = 0; lane < 32; ++lane) {
      const U32 begin = lane / size * size;
      expected[lane] = begin * 1000 + size * begin + size * (size - 1) / 2 + (begin == 5 / size * size ? 32 : 0);
    }
    EXPECT_EQ(array.values(), expected) << size;
  }
}

/// Quarters come to the instruction in two parts: each is complete on its own.
TEST(WarpOperation, GroupsWaitForTheirOwnMembersAlone) {
  GlobalMemory memory;
  DeviceArray<U32> array(memory, numbered(32));
  TestKernel(kThread +
                 "and.b32 %r1, %thread, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1; and.b32 %r3, %thread, 12;"
                 "setp.eq.u32 %q1, %r3, 12; mov.u32 %r4, 1; @%q1 bra $late; bra $all;"
                 "$late: mov.u32 %r4, 2; $all: redux.sync.add.u32 %r5, %r4, %r2; st.global.u32 [%address], %r5;",
             1)
      .run(memory, {array.address()}, {}, {32});
  for (U32 lane = 0; lane < 32; ++lane) EXPECT_EQ(array.values()[lane], (lane & 8) != 0 ? 12u : 8u);
}

TEST(WarpOperation, IsAFaultIfALaneNeverComes) {
  const std::string text = fault_of([] {
    words_of("setp.ge.u32 %q1, %thread, 8; @%q1 bra $wait; bar.warp.sync 0xffffffff; ret; $wait: bar.sync 0;", 32);
  });
  EXPECT_NE(text.find("never come"), text.npos) << text;
}

/// PTX ISA, shfl.sync, vote.sync, match.sync, redux.sync, elect.sync: a thread waits for the non-exited threads of its
/// mask. Lanes 0 to 15 come first, and lanes 16 to 31 end without them.
TEST(WarpOperation, CountsThreadsThatHaveNotEnded) {
  const auto read = [](const std::string& instruction, const std::string& end) {
    return words_of("mov.u32 %r1, 9; setp.ge.u32 %q1, %thread, 16; @%q1 bra $end;" + instruction +
                        "st.global.u32 [%address], %r1; ret; $end:" + end + "st.global.u32 [%address], %r1;",
                    32);
  };
  std::vector<U32> expected(32, 9);
  for (U32 lane = 0; lane < 16; ++lane) expected[lane] = 15 - lane;
  EXPECT_EQ(read("shfl.sync.bfly.b32 %r1, %thread, 15, 31, -1;", ""), expected);
  const auto expect = [&](const std::string& instruction, U32 value) {
    std::ranges::fill(expected.begin(), expected.begin() + 16, value);
    EXPECT_EQ(read(instruction, ""), expected) << instruction;
    const std::string spins = "mov.u32 %r3, 0; $more: add.u32 %r3, %r3, 1; setp.lt.u32 %q5, %r3, 3000; @%q5 bra $more;";
    EXPECT_EQ(read(instruction, spins), expected) << instruction;
  };
  expect("vote.sync.ballot.b32 %r1, 1, -1;", 0xffff);
  expect("vote.sync.all.pred %q2, %q1, -1; selp.u32 %r1, 5, 6, %q2;", 6);
  expect("mov.u32 %r2, 3; match.any.sync.b32 %r1, %r2, -1;", 0xffff);
  expect("mov.u32 %r2, 3; match.all.sync.b32 %r1|%q2, %r2, -1;", 0xffff);
  expect("redux.sync.add.u32 %r1, %thread, -1;", 120);
  expect("elect.sync %r1|%q2, -1;", 0);
  expect("bar.warp.sync -1; mov.u32 %r1, 4;", 4);
}

/// Lanes leave a loop one after another, and those that remain vote.
TEST(WarpOperation, GoesOnWithoutLanesThatEndOneByOne) {
  const std::vector<U32> words = words_of(
      "mov.u32 %r1, 0; $next: vote.sync.ballot.b32 %r2, 1, -1; popc.b32 %r2, %r2;\n"
      "setp.ge.u32 %q1, %r1, %thread; @%q1 bra $done; add.u32 %r1, %r1, 1; bra.uni $next;\n"
      "$done: st.global.u32 [%address], %r2;",
      32);
  for (U32 lane = 0; lane < 32; ++lane) EXPECT_EQ(words[lane], 32 - lane);
}

TEST(WarpOperation, BarriersWithTheSameMaskAreOne) {
  const auto body = [](const std::string& masks) {
    return ".shared .align 4 .b32 word; setp.ge.u32 %q1, %thread, 8; @%q1 bra $wait; setp.eq.u32 %q2, %thread, 3;"
           "@%q2 st.shared.u32 [word], 6; bar.warp.sync 0xffffffff; bra $end; $wait: bar.warp.sync " +
           masks + "; $end: ld.shared.u32 %r1, [word]; st.global.u32 [%address], %r1;";
  };
  EXPECT_EQ(words_of(body("0xffffffff"), 32), std::vector<U32>(32, 6));
  const std::string text = fault_of([&] { words_of(body("0xffffff00"), 32); });
  EXPECT_NE(text, "");
}

TEST(Grid, EndsAKernelThatDoesNot) {
  for (const std::uint64_t seed : {0u, 1u}) {
    const std::string text = fault_of(
        [&] { words_of("$again: add.u32 %r1, %r1, 1; bra $again;", 40, {.seed = seed, .most_instructions = 10000}); });
    EXPECT_NE(text.find("the block does not end"), text.npos) << text;
  }
}

TEST(Grid, ExecutesEveryBlockOnceOnAnyNumberOfThreads) {
  for (const unsigned threads : {1u, 3u})
    for (const std::uint64_t seed : {0u, 5u}) {
      GlobalMemory memory;
      DeviceArray<U32> counts(memory, std::vector<U32>(60));
      const TestKernel kernel(
          ".reg .b32 %r<9>; .reg .b64 %rd<3>;\n"
          "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r4, %r2, %r3, %r1;\n"
          "mul.wide.u32 %rd1, %r4, 4; add.u64 %rd1, %rd1, %p0; atom.global.add.u32 %r5, [%rd1], 1;",
          1);
      const Counters counters =
          kernel.run(memory, {counts.address()}, {10, 6}, {1}, {.seed = seed, .threads = threads});
      EXPECT_EQ(counts.values(), std::vector<U32>(60, 1));
      EXPECT_EQ(counters.blocks, 60u);
    }
}

}  // namespace
}  // namespace gradring::simulated_gpu
