// SPDX-License-Identifier: Apache-2.0
// Idioms of correct CUDA programs, of which nothing is reported, each beside the same program with a defect: warps
// and blocks.
#include "tests/kernels/simulated_gpu/idioms.h"

namespace gradring::simulated_gpu {
namespace {

/// cg::tiled_partition<2..16>: sync, shfl and reduce with the tile's mask.
std::string tile_sum(unsigned size, const std::string& barrier) {
  const std::string first = std::to_string(32 - size);
  return kSharedWords + kThread + kOwnWord + "and.b32 %r1, %thread, " + first + "; mov.u32 %r2, " +
         std::to_string((1u << size) - 1) + "; shl.b32 %r2, %r2, %r1; st.shared.u32 [%word], %thread;" + barrier +
         "xor.b32 %r3, %thread, 1; shl.b32 %r3, %r3, 2; add.u32 %r3, %r3, %r7; ld.shared.u32 %r4, [%r3];"
         "shfl.sync.bfly.b32 %r5, %r4, 1, 31, %r2; add.u32 %r5, %r5, %r4; st.global.u32 [%address], %r5;";
}

TEST(Idioms, TilesSmallerThanAWarp) {
  for (const unsigned size : {2u, 4u, 8u, 16u}) {
    expect_nothing(tile_sum(size, "bar.warp.sync %r2;"), {}, {32});
    expect_only("shared-race", tile_sum(size, ""), {}, {32});
  }
}

/// Some lanes have left: the tile of the others goes on, as a branch around a tile's work does.
TEST(Idioms, TilesInDivergentCode) {
  const std::string body = kThread +
                           "and.b32 %r1, %thread, 28; mov.u32 %r2, 15; shl.b32 %r2, %r2, %r1; and.b32 %r3, %thread, 4;"
                           "setp.eq.u32 %q1, %r3, 0; @%q1 bra $end; redux.sync.add.u32 %r4, %thread, %r2;"
                           "st.global.u32 [%address], %r4; $end: ret;";
  expect_nothing(body, {}, {32});
  EXPECT_EQ(run(body, {}, {32}).words[4], 4u + 5 + 6 + 7);
}

/// cg::coalesced_threads() and an atomic by its first lane.
TEST(Idioms, WarpAggregatedAtomics) {
  const std::string body =
      kThread +
      "and.b32 %r1, %thread, 1; setp.eq.u32 %q1, %r1, 0; @%q1 bra $end;"
      "activemask.b32 %r2; brev.b32 %r3, %r2; clz.b32 %r3, %r3; popc.b32 %r4, %r2; setp.eq.u32 %q2, %thread, %r3;"
      "@%q2 atom.global.add.u32 %r5, [%p0], %r4; shfl.sync.idx.b32 %r5, %r5, %r3, 31, %r2; $end: ret;";
  expect_nothing(body, {8}, {32});
  EXPECT_EQ(run(body, {8}, {32}).words[0], 8u * 16);
}

/// __match_any_sync, and each group adds once.
TEST(Idioms, MatchedLanesAddOnce) {
  const std::string body =
      kThread +
      "rem.u32 %r1, %thread, 5; match.any.sync.b32 %r2, %r1, 0xffffffff; redux.sync.add.u32 %r3, %thread, %r2;"
      "brev.b32 %r4, %r2; clz.b32 %r4, %r4; setp.eq.u32 %q1, %r4, %thread; mul.wide.u32 %rd1, %r1, 4;"
      "add.u64 %rd1, %rd1, %p0; @%q1 red.global.add.u32 [%rd1], %r3;";
  expect_nothing(body, {4}, {32});
  const Outcome found = run(body, {4}, {32});
  EXPECT_EQ(found.words[0] + found.words[1] + found.words[2] + found.words[3] + found.words[4], 4u * 496);
}

TEST(Idioms, ShufflesOfLanesThatTakePart) {
  const auto body = [](const std::string& lane) {
    return kThread + "setp.ge.u32 %q1, %thread, 16; @%q1 ret; shfl.sync.idx.b32 %r1, %thread, " + lane +
           ", 31, 0xffff; st.global.u32 [%address], %r1;";
  };
  expect_nothing(body("15"), {}, {32});
  expect_only("undefined-value", body("16"), {}, {32});
}

TEST(Idioms, ThreadsThatReturnBeforeTheBarrier) {
  const std::string body = kSharedWords + kThread + kOwnWord +
                           "setp.ge.u32 %q1, %thread, 45; @%q1 ret; st.shared.u32 [%word], %thread; bar.sync 0;"
                           "setp.ne.u32 %q2, %thread, 0; @%q2 ret; ld.shared.u32 %r1, [%r7+176];"
                           "st.global.u32 [%address], %r1;";
  expect_nothing(body, {2}, {96});
  expect_only("early-exit", body, {1}, {96}, true);
}

/// Of those that have returned, what they did before is ordered before the barrier.
TEST(Idioms, WarpsThatReturnAfterTheirAtomics) {
  const auto body = [](const std::string& barrier) {
    return kSharedWords + kThread + kOwnWord +
           "st.shared.u32 [%word], 0; bar.sync 0; and.b32 %r1, %thread, 31; shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r7;"
           "red.shared.add.u32 [%r1], 1; setp.ge.u32 %q1, %thread, 32; @%q1 bra $return; " +
           barrier + "ld.shared.u32 %r2, [%word]; bar.sync 0; xor.b32 %r3, %word, 4; st.shared.u32 [%r3], %r2;" +
           "bar.sync 0; ld.shared.u32 %r2, [%word]; st.global.u32 [%address], %r2; $return: ret;";
  };
  expect_nothing(body("bar.sync 0;"), {1}, {128});
  EXPECT_EQ(run(body("bar.sync 0;"), {1}, {128}).words[31], 4u);
  EXPECT_FALSE(run(body(""), {1}, {128}, 1).findings.empty());
}

/// The last instruction of a warp that returns is the last one of its turn, with some seeds.
TEST(Idioms, WarpsThatReturnBeforeTheBarrierOfOthers) {
  const TestKernel kernel(kSharedWords + kThread + kOwnWord +
                              "st.shared.u32 [%word], %thread; setp.ge.u32 %q1, %thread, 32; @%q1 ret; bar.sync 0;"
                              "ld.shared.u32 %r2, [%word+128]; st.global.u32 [%address], %r2;",
                          1);
  GlobalMemory memory;
  const DeviceArray<U32> array(memory, std::vector<U32>(64));
  FindingLog log({.goes_on = true});
  for (std::uint64_t seed = 1; seed < 4000; ++seed)
    kernel.run(memory, {array.address()}, {1}, {64}, {.seed = seed, .findings = &log});
  EXPECT_THAT(log.texts(), testing::IsEmpty());
}

/// A barrier in a loop of which some lanes leave out a turn: they end while the others wait.
TEST(Idioms, LanesThatReturnBesideLanesThatPassTheBarrier) {
  const auto body = [](const std::string& before, const std::string& within) {
    return kSharedWords + kThread + kOwnWord +
           "st.shared.u32 [%word], %thread; bar.sync 0; mov.u32 %r1, 32;"
           "$step: shr.u32 %r1, %r1, 1; setp.ge.u32 %q1, %thread, %r1; " +
           before +
           " @%q1 bra $skip;"
           "shl.b32 %r2, %r1, 2; add.u32 %r2, %r2, %word; ld.shared.u32 %r3, [%r2]; ld.shared.u32 %r4, [%word];"
           "add.u32 %r4, %r4, %r3; st.shared.u32 [%word], %r4; " +
           within +
           "$skip: bar.warp.sync 0xffffffff; setp.gt.u32 %q2, %r1, 1; @%q2 bra $step; setp.eq.u32 %q3, %thread, 0;"
           "@%q3 st.global.u32 [%p0], %r4; $end: ret;";
  };
  expect_nothing(body("bar.sync 0;", ""), {}, {32});
  EXPECT_FALSE(run(kSharedWords + kThread + kOwnWord +
                       "st.shared.u32 [%word], %thread; bar.sync 0; mov.u32 %r1, 32; $step: shr.u32 %r1, %r1, 1;"
                       "setp.ge.u32 %q1, %thread, %r1; @%q1 bra $skip; bar.sync 0;"
                       "$skip: setp.gt.u32 %q2, %r1, 1; @%q2 bra $step; st.global.u32 [%address], %r1;",
                   {}, {32})
                   .findings.empty());
  const std::string returns = "setp.ge.u32 %q1, %thread, 20; @%q1 bra $end;";
  expect_nothing(kThread + returns + "bar.sync 0; st.global.u32 [%address], %thread; bar.sync 0; $end: ret;", {}, {64});
  expect_nothing(kThread + returns + "bar.sync 0; bra $done; $end: st.global.u32 [%address], 1; $done: ret;", {}, {64});
}

/// Producers arrive, consumers wait: named barriers, in both directions.
TEST(Idioms, ProducerAndConsumerByNamedBarriers) {
  const auto body = [](const std::string& full) {
    return kSharedWords + kThread +
           "and.b32 %r1, %thread, 31; shl.b32 %r1, %r1, 2; mov.u32 %r7, words; add.u32 %word, %r1, %r7;"
           "setp.ge.u32 %q1, %thread, 32; mov.u32 %r2, 0; @%q1 bra $consumer;"
           "$produce: bar.sync 1, 64; st.shared.u32 [%word], %r2; " +
           full +
           " add.u32 %r2, %r2, 1; setp.lt.u32 %q2, %r2, 3; @%q2 bra $produce; ret;"
           "$consumer: bar.arrive 1, 64; bar.sync 2, 64; xor.b32 %r3, %word, 4; ld.shared.u32 %r4, [%r3];"
           "st.global.u32 [%address], %r4; add.u32 %r2, %r2, 1; setp.lt.u32 %q2, %r2, 3; @%q2 bra $consumer;";
  };
  expect_nothing(body("bar.arrive 2, 64;"), {}, {64});
  const Outcome early =
      run(kSharedWords + kThread + kOwnWord +
              "setp.ge.u32 %q1, %thread, 32; @%q1 bra $consumer; bar.arrive 2, 64; st.shared.u32 [%word], %thread; ret;"
              "$consumer: bar.sync 2, 64; ld.shared.u32 %r4, [%word+-128]; st.global.u32 [%address], %r4;",
          {}, {64});
  EXPECT_FALSE(early.findings.empty());
}

TEST(Idioms, OneFlagThatSeveralThreadsSet) {
  const auto body = [](const std::string& value) {
    return kSharedWords + kThread + kOwnWord +
           "setp.eq.u32 %q1, %thread, 0; @%q1 st.shared.u32 [words], 0; bar.sync 0; and.b32 %r1, %thread, 3;"
           "setp.eq.u32 %q2, %r1, 1; @%q2 st.shared.u32 [words], " +
           value + "; bar.sync 0; ld.shared.u32 %r2, [words]; st.global.u32 [%address], %r2;";
  };
  expect_nothing(body("1"), {}, {64});
  expect_only("same-value", body("1"), {}, {64}, true);
  expect_only("shared-race", body("%thread"), {}, {64});
}

/// Breadth-first search and others: any block says that there is more to do.
TEST(Idioms, OneFlagThatSeveralBlocksSet) {
  const auto body = [](const std::string& value) {
    return kOfGrid + "setp.eq.u32 %q1, %thread, 3; add.u32 %r1, %block, 7; @%q1 st.global.u32 [%p0], " + value + ";";
  };
  expect_nothing(body("1"), {5}, {32});
  expect_only("same-value", body("1"), {5}, {32}, true);
  expect_only("block-race", body("%r1"), {5}, {32});
}

/// A halo: blocks store 32 words at an offset of 16, so half of what each stores is stored by the next block, too.
TEST(Idioms, EqualValuesWhereBlocksOverlap) {
  const auto body = [](const std::string& value) {
    return kOfGrid + "mad.lo.u32 %r1, %block, 16, %thread; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %p0;" +
           "setp.eq.u32 %q1, %r1, 20; selp.b32 %r2, %block, %r1, %q1; st.global.u32 [%rd1], " + value + ";";
  };
  expect_nothing(body("%r1"), {5}, {32});
  expect_only("same-value", body("%r1"), {5}, {32}, true);
  expect_only("block-race", body("%thread"), {5}, {32});
  // Block 0 stores the 0 that word 20 has already, block 1 a 1, and equal values beside it.
  EXPECT_THAT(run(body("%r2"), {5}, {32}, 0, true).findings,
              testing::ElementsAre(testing::StartsWith("block-race"), testing::StartsWith("same-value")));
}

TEST(Idioms, PaddingOfACopiedStruct) {
  // struct { int a; double b; }
  const std::string local = ".local .align 8 .b8 copy[16]; " + kThread +
                            "mov.b64 %rd1, 5; st.local.u32 [copy], %thread; st.local.u64 [copy+8], %rd1;"
                            "ld.local.v2.u64 {%rd2, %rd3}, [copy];";
  const std::string shared = ".shared .align 8 .b8 copy[1024]; .reg .b32 %word; " + kThread +
                             "mov.b64 %rd1, 5; shl.b32 %word, %thread, 4; mov.u32 %r1, copy; add.u32 %word, %word, %r1;"
                             "st.shared.u32 [%word], %thread; st.shared.u64 [%word+8], %rd1;"
                             "ld.shared.v2.u64 {%rd2, %rd3}, [%word];";
  for (const std::string& body : {local, shared}) {
    expect_nothing(body, {}, {32});
    expect_only("padding", body, {}, {32}, true);
  }
}

TEST(Idioms, LocalArraysAreWrittenBeforeTheyAreRead) {
  const auto body = [](const std::string& write) {
    return ".local .align 4 .b8 array[32]; " + kThread + write +
           "and.b32 %r1, %thread, 7; shl.b32 %r1, %r1, 2; mov.u32 %r2, array; add.u32 %r2, %r2, %r1;"
           "ld.local.u32 %r3, [%r2]; st.global.u32 [%address], %r3;";
  };
  const std::string half = "st.local.v4.u32 [array], {%thread, %thread, %thread, %thread};";
  expect_nothing(body(half + "st.local.v4.u32 [array+16], {%thread, %thread, %thread, %thread};"), {}, {32});
  expect_only("local-not-written", body(half), {}, {32});
}

/// Histograms: atomics of shared memory, then of global memory.
TEST(Idioms, HistogramInTwoSteps) {
  const auto body = [](const std::string& barrier, const std::string& add) {
    return kSharedWords + kThread + kOwnWord +
           "setp.lt.u32 %q1, %thread, 16; @%q1 st.shared.u32 [%word], 0; bar.sync 0; and.b32 %r1, %thread, 15;"
           "shl.b32 %r1, %r1, 2; add.u32 %r1, %r1, %r7; red.shared.add.u32 [%r1], 1; " +
           barrier + "@!%q1 ret; ld.shared.u32 %r2, [%word]; " + add;
  };
  expect_nothing(body("bar.sync 0;", "red.global.add.u32 [%address], %r2;"), {4}, {64});
  EXPECT_EQ(run(body("bar.sync 0;", "red.global.add.u32 [%address], %r2;"), {4}, {64}).words[3], 16u);
  expect_only("shared-race", body("", "red.global.add.u32 [%address], %r2;"), {4}, {64});
  expect_only(
      "block-race",
      body("bar.sync 0;", "ld.global.u32 %r3, [%address]; add.u32 %r3, %r3, %r2; st.global.u32 [%address], %r3;"), {4},
      {64});
}

/// Double buffering: one barrier for each step, as the other buffer is written meanwhile.
TEST(Idioms, DoubleBufferWithOneBarrier) {
  const auto body = [](const std::string& barrier) {
    return kSharedWords + kThread + kOwnWord +
           "mov.u32 %r1, 0; st.shared.u32 [%word], %thread; bar.sync 0;"
           "$step: and.b32 %r2, %r1, 1; shl.b32 %r2, %r2, 8; xor.b32 %r3, %word, 128; add.u32 %r3, %r3, %r2;"
           "ld.shared.u32 %r4, [%r3]; xor.b32 %r5, %r2, 256; add.u32 %r5, %r5, %word; st.shared.u32 [%r5], %r4;" +
           barrier + "add.u32 %r1, %r1, 1; setp.lt.u32 %q1, %r1, 6; @%q1 bra $step;";
  };
  expect_nothing(body("bar.sync 0;"), {}, {64});
  EXPECT_FALSE(run(body(""), {}, {64}).findings.empty());
}

/// Warps of a block exchange words of global memory.
TEST(Idioms, ExchangeThroughGlobalMemory) {
  const auto body = [](const std::string& barrier) {
    return kOfGrid + "st.global.u32 [%own], %thread; " + barrier +
           "xor.b32 %r1, %r8, 32; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, %p0; ld.global.u32 %r2, [%rd1];" +
           barrier + "st.global.u32 [%own], %r2;";
  };
  expect_nothing(body("bar.sync 0;"), {3}, {64});
  EXPECT_EQ(run(body("bar.sync 0;"), {3}, {64}).words[70], 38u);
  expect_only("global-race", body(""), {3}, {64});
  const std::string one_value =
      kOfGrid + "mul.wide.u32 %rd1, %block, 4; add.u64 %rd1, %rd1, %p0; st.global.u32 [%rd1], ";
  expect_nothing(one_value + "7;", {3}, {64});
  expect_only("same-value", one_value + "7;", {3}, {64}, true);
  expect_only("global-race", one_value + "%thread;", {3}, {64});
}

/// Blocks that have touched much memory wait for each other; then each has a race of its own.
TEST(Idioms, RacesOfBlocksThatWereSuspended) {
  const TestKernel kernel(
      kOfGrid +
          "shl.b32 %r1, %block, 14; mul.wide.u32 %rd1, %r1, 1; add.u64 %rd1, %address, %rd1; mov.u32 %r2, 0;"
          "$page: st.global.u32 [%rd1+1024], %thread; add.u64 %rd1, %rd1, 1024; add.u32 %r2, %r2, 1;"
          "setp.lt.u32 %q1, %r2, 14; @%q1 bra $page; bar.sync 0;"
          "setp.ne.u32 %q2, %thread, 0; @%q2 bra $wait; red.global.add.u32 [%p0], 1;"
          "$poll: ld.volatile.global.u32 %r3, [%p0]; setp.ne.u32 %q3, %r3, 8; @%q3 bra $poll;"
          "$wait: bar.sync 0; st.global.u32 [%rd1+512], %thread;"
          "setp.ge.u32 %q4, %thread, 32; @%q4 ld.global.u32 %r4, [%rd1+384];",
      1);
  const auto races = [&](std::size_t most_race_bytes) {
    FindingLog log({.goes_on = true});
    GlobalMemory memory;
    const DeviceArray<U32> array(memory, std::vector<U32>(9 << 12));
    kernel.run(memory, {array.address()}, {8}, {64}, {.most_race_bytes = most_race_bytes, .findings = &log});
    std::uint64_t found = 0;
    for (const Finding& finding : log.all())
      if (finding.kind == FindingKind::global_race) found += finding.count;
    return found;
  };
  EXPECT_EQ(races(std::size_t{1} << 30), 8u * 32);
  EXPECT_EQ(races(std::size_t{200} << 10), 8u * 32) << "memory for two of the blocks";
}

/// cp.async, its wait and the barrier.
TEST(Idioms, AsynchronousCopyOfATile) {
  const auto body = [](const std::string& wait, const std::string& barrier) {
    return kSharedWords + kThread + kOwnWord +
           "mul.wide.u32 %rd1, %thread, 4; add.u64 %rd1, %rd1, %p1; cp.async.ca.shared.global [%word], [%rd1], 4;"
           "cp.async.commit_group; " +
           wait + barrier +
           "xor.b32 %r1, %word, 128; ld.shared.u32 %r2, [%r1];"
           "st.global.u32 [%address], %r2;";
  };
  expect_nothing(body("cp.async.wait_group 0;", "bar.sync 0;"), {}, {64});
  EXPECT_FALSE(run(body("cp.async.wait_group 0;", ""), {}, {64}).findings.empty());
  EXPECT_FALSE(run(body("", "bar.sync 0;"), {}, {64}).findings.empty());
}

}  // namespace
}  // namespace gradring::simulated_gpu
