// SPDX-License-Identifier: Apache-2.0
// Idioms of correct CUDA programs, of which nothing is reported, each beside the same program with a defect.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/machine/findings.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

using testing::IsEmpty;

/// "%block", and the address of the word of the thread in the grid.
const std::string kOfGrid =
    kThread +
    ".reg .b32 %block; .reg .b64 %own; mov.u32 %block, %ctaid.x; mov.u32 %r8, %ntid.x;"
    "mad.lo.u32 %r8, %block, %r8, %thread; mul.wide.u32 %own, %r8, 4; add.u64 %own, %own, %p0;\n";
const std::string kSharedWords = ".shared .align 16 .b32 words[1024]; .reg .b32 %word; ";
/// The address in shared memory of the word of the thread.
const std::string kOwnWord = "shl.b32 %word, %thread, 2; mov.u32 %r7, words; add.u32 %word, %word, %r7;\n";

struct Outcome {
  std::vector<std::string> findings;  ///< "block-race: ld.global.u32 %r1, [%p0];"
  std::vector<U32> words;
  std::string fault;
};

/// On `words` words of zeros: %p0, and numbered ones: %p1. Twice, as reads before the first write of another block are known
/// from the second launch on; what the first leaves is cleared.
Outcome run(const std::string& body, Extent grid, Extent block, std::uint64_t seed = 0, bool formal = false,
            std::size_t words = 4096) {
  Outcome result;
  FindingLog log({.goes_on = true, .formal = formal});
  GlobalMemory memory;
  const DeviceArray<U32> source(memory, numbered(words));
  const TestKernel kernel(body, 2);
  result.fault = fault_of([&] {
    for (int i = 0; i < 2; ++i) {
      const DeviceArray<U32> array(memory, std::vector<U32>(words));
      kernel.run(memory, {array.address(), source.address()}, grid, block, {.seed = seed, .findings = &log});
      result.words = array.values();
    }
  });
  for (const Finding& finding : log.all())
    result.findings.push_back(std::string(name_of(finding.kind)) + ": " + finding.instruction);
  std::ranges::sort(result.findings);
  return result;
}

/// In several orders.
void expect_nothing(const std::string& body, Extent grid, Extent block, bool formal = false) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Outcome found = run(body, grid, block, seed, formal);
    EXPECT_THAT(found.findings, IsEmpty()) << body;
    EXPECT_EQ(found.fault, "");
  }
}

void expect_only(const std::string& kind, const std::string& body, Extent grid, Extent block, bool formal = false) {
  const Outcome found = run(body, grid, block, 0, formal);
  EXPECT_FALSE(found.findings.empty()) << body;
  for (const std::string& one : found.findings) EXPECT_TRUE(one.starts_with(kind + ": ")) << one;
  EXPECT_EQ(found.fault, "");
}

// ---------------------------------------------------------------------------------------------------------------------
// Warps

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

// ---------------------------------------------------------------------------------------------------------------------
// Blocks

TEST(Idioms, ThreadsThatReturnBeforeTheBarrier) {
  const std::string body = kSharedWords + kThread + kOwnWord +
                           "setp.ge.u32 %q1, %thread, 45; @%q1 ret; st.shared.u32 [%word], %thread; bar.sync 0;"
                           "setp.ne.u32 %q2, %thread, 0; @%q2 ret; ld.shared.u32 %r1, [%r7+176];"
                           "st.global.u32 [%address], %r1;";
  expect_nothing(body, {2}, {96});
  expect_only("early-exit", body, {1}, {96}, true);
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
  expect_only("not-written", body(half), {}, {32});
}

// ---------------------------------------------------------------------------------------------------------------------
// Grids: order between blocks

TEST(Idioms, ReadOnlyLoadsOfWhatNobodyWrites) {
  const auto body = [](const std::string& source) {
    return kOfGrid + "xor.b32 %r1, %thread, 1; mul.wide.u32 %rd1, %r1, 4; add.u64 %rd1, %rd1, " + source +
           "; ld.global.nc.u32 %r2, [%rd1]; st.global.u32 [%own], %r2;";
  };
  expect_nothing(body("%p1"), {3}, {32});
  expect_only("read-only-load", body("%p0"), {1}, {32});
}

/// threadFenceReduction: the last block adds up what all left, and clears the counter.
std::string last_block(const std::string& release, const std::string& acquire, const std::string& load) {
  return kSharedWords + kOfGrid +
         "setp.ne.u32 %q1, %thread, 0; mul.wide.u32 %rd1, %block, 4; add.u64 %rd1, %rd1, %p0;"
         "@!%q1 st.global.u32 [%rd1+64], %block; " +
         release + "@%q1 bra $wait; mov.u32 %r1, %nctaid.x; sub.u32 %r1, %r1, 1; atom.global.inc.u32 %r2, [%p0], %r1;" +
         acquire +
         "setp.eq.u32 %q2, %r2, %r1; selp.u32 %r3, 1, 0, %q2; st.shared.u32 [words], %r3; $wait: bar.sync 0;"
         "ld.shared.u32 %r4, [words]; setp.eq.u32 %q3, %r4, 0; @%q3 ret; mov.u32 %r5, %nctaid.x;"
         "setp.ge.u32 %q4, %thread, %r5; @%q4 ret; " +
         load +
         " %r6, [%address+64]; st.global.u32 [%address+1024], %r6;"
         "@!%q1 st.global.u32 [%p0], 0;";
}

TEST(Idioms, LastBlockReduction) {
  expect_nothing(last_block("membar.gl;", "fence.acq_rel.gpu;", "ld.global.u32"), {8}, {64});
  expect_only("block-race", last_block("", "", "ld.global.u32"), {8}, {64});
  expect_only("block-race", last_block("fence.acq_rel.cta;", "fence.acq_rel.gpu;", "ld.global.u32"), {8}, {64});
  expect_only("block-race", last_block("membar.gl;", "", "ld.global.u32"), {8}, {64});
}

/// The same by cuda::atomic_ref with acq_rel.
TEST(Idioms, LastBlockByAcquireAndRelease) {
  const std::string body = last_block("", "", "ld.global.u32");
  const std::string plain = "atom.global.inc.u32";
  std::string ordered = body;
  ordered.replace(ordered.find(plain), plain.size(), "atom.acq_rel.gpu.global.inc.u32");
  expect_nothing(ordered, {8}, {64});
  std::string released = body;
  released.replace(released.find(plain), plain.size(), "atom.release.gpu.global.inc.u32");
  expect_only("block-race", released, {8}, {64});
}

/// A fence that publishes nothing of what comes after it.
TEST(Idioms, FencesOrderWhatCameBefore) {
  const auto body = [](const std::string& first, const std::string& second) {
    return kOfGrid + "setp.ne.u32 %q1, %thread, 0; @%q1 ret; setp.eq.u32 %q2, %block, 1; @%q2 bra $read;" + first +
           "atom.global.exch.b32 %r1, [%p0], 1;" + second +
           "ret;"
           "$read: atom.global.add.u32 %r2, [%p0], 0; membar.gl; setp.eq.u32 %q3, %r2, 0; @%q3 ret;"
           "ld.global.u32 %r3, [%p0+128]; st.global.u32 [%p0+256], %r3;";
  };
  const std::string store = "st.global.u32 [%p0+128], 5;";
  const std::string fence = "membar.gl;";
  expect_nothing(body(store + fence, ""), {2}, {32});
  expect_only("block-race", body(fence, store), {2}, {32});
  expect_only("block-race", body(fence + store, fence), {2}, {32});
  expect_only("block-race", body(store, fence), {2}, {32});
}

/// Data by a plain store, its flag by st.release and ld.acquire. Block 0 runs first, so nobody has to wait.
std::string message(const std::string& store, const std::string& load) {
  return kOfGrid +
         "setp.eq.u32 %q2, %block, 1; @%q2 bra $read; st.global.u32 [%address+128], %thread; bar.sync 0;"
         "setp.ne.u32 %q1, %thread, 0; @%q1 ret; mov.u32 %r1, 1; " +
         store + " ret; $read: " + load +
         "setp.eq.u32 %q3, %r2, 0; @%q3 ret; ld.global.u32 %r3, [%address+128]; st.global.u32 [%address+1024], %r3;";
}

TEST(Idioms, FlagByReleaseAndAcquire) {
  const std::string release = "st.release.gpu.global.u32 [%p0], %r1;";
  const std::string acquire = "ld.acquire.gpu.global.u32 %r2, [%p0];";
  const std::string relaxed_store = "st.relaxed.gpu.global.u32 [%p0], %r1;";
  const std::string relaxed_load = "ld.relaxed.gpu.global.u32 %r2, [%p0];";
  const std::string volatile_store = "st.volatile.global.u32 [%p0], %r1;";
  const std::string volatile_load = "ld.volatile.global.u32 %r2, [%p0];";
  const std::string fence = "fence.acq_rel.gpu;";
  expect_nothing(message(release, acquire), {2}, {32});
  expect_nothing(message(fence + relaxed_store, relaxed_load + fence), {2}, {32});
  expect_nothing(message(fence + volatile_store, volatile_load + "membar.gl;"), {2}, {32});
  expect_nothing(message(release, volatile_load + fence), {2}, {32});
  expect_nothing(message(fence + "atom.global.exch.b32 %r4, [%p0], %r1;", acquire), {2}, {32});
  expect_nothing(message("atom.acq_rel.sys.global.exch.b32 %r4, [%p0], %r1;", acquire), {2}, {32});
  expect_nothing(message("red.release.gpu.global.add.u32 [%p0], %r1;", acquire), {2}, {32});
  expect_only("block-race", message(relaxed_store, acquire), {2}, {32});
  expect_only("block-race", message(release, relaxed_load), {2}, {32});
  expect_only("block-race", message(relaxed_store + fence, acquire), {2}, {32});
  expect_only("block-race", message(release, fence + relaxed_load), {2}, {32});
  expect_only("block-race", message("st.global.u32 [%p0], %r1;", "ld.global.u32 %r2, [%p0];"), {2}, {32});
  expect_only("block-race", message("st.release.cta.global.u32 [%p0], %r1;", "ld.acquire.cta.global.u32 %r2, [%p0];"),
              {2}, {32});
}

/// Block 1 passes on what it learned from block 0 (causality order is transitive).
TEST(Idioms, FlagsInAChain) {
  const auto body = [](const std::string& order) {
    return kOfGrid +
           "setp.ne.u32 %q1, %thread, 0; @%q1 ret; mul.wide.u32 %rd1, %block, 4; add.u64 %rd1, %rd1, %p0;"
           "setp.eq.u32 %q2, %block, 0; @%q2 bra $first; ld.acquire.gpu.global.u32 %r1, [%rd1+-4];"
           "setp.eq.u32 %q3, %r1, 0; @%q3 ret; setp.lt.u32 %q4, %block, 3; @%q4 bra $pass;"
           "ld.global.u32 %r2, [%p0+512]; st.global.u32 [%p0+1024], %r2; ret;"
           "$first: st.global.u32 [%p0+512], 9; $pass: mov.u32 %r3, 1; st." +
           order + ".global.u32 [%rd1], %r3;";
  };
  expect_nothing(body("release.gpu"), {4}, {32});
  EXPECT_EQ(run(body("release.gpu"), {4}, {32}).words[256], 9u);
  expect_only("block-race", body("relaxed.gpu"), {4}, {32});
}

/// A decoupled look-back scan: the value and its state in one 64-bit word, by relaxed accesses alone.
TEST(Idioms, LookBackScanByOneWord) {
  const auto body = [](const std::string& words) {
    return kOfGrid +
           "setp.ne.u32 %q1, %thread, 0; @%q1 ret; mul.wide.u32 %rd1, %block, 8; add.u64 %rd1, %rd1, %p0;"
           "mov.u64 %rd3, 0; setp.eq.u32 %q2, %block, 0; @%q2 bra $publish; ld." +
           words +
           ".u64 %rd2, [%rd1+-8];"
           "and.b64 %rd4, %rd2, 1; setp.eq.u64 %q3, %rd4, 0; @%q3 ret; shr.u64 %rd3, %rd2, 1;"
           "$publish: cvt.u64.u32 %rd5, %block; add.u64 %rd3, %rd3, %rd5; shl.b64 %rd6, %rd3, 1; or.b64 %rd6, %rd6, 1;"
           "st." +
           words + ".u64 [%rd1], %rd6;";
  };
  expect_nothing(body("relaxed.gpu.global"), {16}, {32});
  EXPECT_EQ(run(body("relaxed.gpu.global"), {16}, {32}).words[30] >> 1, 120u);
  expect_nothing(body("volatile.global"), {16}, {32});
  expect_only("block-race", body("global"), {16}, {32});
}

/// The CUDA C++ Programming Guide's atomicAdd(double): a plain read, and atom.cas until nobody came in between.
TEST(Idioms, AtomicAddOfDoubleByCompareAndSwap) {
  const auto body = [](const std::string& load, const std::string& swap) {
    return kOfGrid + "mov.b64 %rd7, 0d3ff0000000000000; .reg .f64 %one, %sum; mov.b64 %one, %rd7;" + load +
           " %rd1, [%p0]; $again: mov.b64 %rd2, %rd1; mov.b64 %sum, %rd2; add.f64 %sum, %sum, %one; mov.b64 %rd3, "
           "%sum;" +
           swap + " setp.ne.s64 %q1, %rd1, %rd2; @%q1 bra $again;";
  };
  const std::string swap = "atom.global.cas.b64 %rd1, [%p0], %rd2, %rd3;";
  expect_nothing(body("ld.global.u64", swap), {6}, {32});
  expect_nothing(body("ld.volatile.global.u64", swap), {6}, {32});
  EXPECT_EQ(run(body("ld.global.u64", swap), {6}, {32}).words[1], 0x40680000u);  // 192.0
  expect_only("block-race", body("ld.global.u64", "st.global.u64 [%p0], %rd3; mov.b64 %rd1, %rd2;"), {6}, {32});
}

/// A spin lock: atom.cas, fence, work, fence, atom.exch; one thread of each block.
std::string locked(const std::string& after_lock, const std::string& before_unlock, const std::string& unlock) {
  return kOfGrid +
         "setp.ne.u32 %q1, %thread, 0; @%q1 ret; $lock: atom.global.cas.b32 %r1, [%p0], 0, 1;"
         "setp.ne.u32 %q2, %r1, 0; @%q2 bra $lock; " +
         after_lock + "ld.global.u32 %r2, [%p0+64]; add.u32 %r2, %r2, 1; st.global.u32 [%p0+64], %r2; " +
         before_unlock + unlock;
}

TEST(Idioms, LocksWithFences) {
  const std::string fence = "membar.gl;";
  const std::string unlock = "atom.global.exch.b32 %r3, [%p0], 0;";
  const std::string volatile_unlock = "mov.u32 %r4, 0; st.volatile.global.u32 [%p0], %r4;";
  expect_nothing(locked(fence, fence, unlock), {7}, {32});
  EXPECT_EQ(run(locked(fence, fence, unlock), {7}, {32}).words[16], 7u);
  expect_nothing(locked(fence, fence, volatile_unlock), {7}, {32});
  expect_nothing(locked(fence, "", "mov.u32 %r4, 0; st.release.gpu.global.u32 [%p0], %r4;"), {7}, {32});
  expect_only("block-race", locked(fence, "", unlock), {7}, {32});
  expect_only("block-race", locked("", fence, unlock), {7}, {32});
  expect_only("block-race", locked("", "", unlock), {7}, {32});
}

/// A lock-free stack of nodes (value, next): push by atom.cas after a fence, pop by one block at the end of its work.
TEST(Idioms, LockFreeStack) {
  const auto body = [](const std::string& fence) {
    // Node i of block i: words 64 + 2 i (value), 65 + 2 i (next). The head is word 0: a block's number + 1.
    return kOfGrid +
           "setp.ne.u32 %q1, %thread, 0; @%q1 ret; mul.wide.u32 %rd1, %block, 8; add.u64 %rd1, %rd1, %p0;"
           "add.u32 %r1, %block, 1; st.global.u32 [%rd1+256], %r1; ld.global.u32 %r2, [%p0];"
           "$push: mov.u32 %r3, %r2; st.global.u32 [%rd1+260], %r3; " +
           fence +
           "atom.global.cas.b32 %r2, [%p0], %r3, %r1; setp.ne.u32 %q2, %r2, %r3; @%q2 bra $push;"
           // Whoever pushes looks at the node below.
           "setp.eq.u32 %q3, %r3, 0; @%q3 ret; " +
           fence +
           "sub.u32 %r4, %r3, 1; mul.wide.u32 %rd2, %r4, 8; add.u64 %rd2, %rd2, %p0; ld.global.u32 %r5, [%rd2+256];"
           "st.global.u32 [%rd1+2048], %r5;";
  };
  expect_nothing(body("membar.gl;"), {9}, {32});
  expect_only("block-race", body(""), {9}, {32});
}

/// A queue: a slot by an atomic, its content before its flag.
TEST(Idioms, QueueOfSlots) {
  const auto body = [](const std::string& release, const std::string& acquire) {
    return kOfGrid +
           "setp.ne.u32 %q1, %thread, 0; @%q1 ret; and.b32 %r1, %block, 1; setp.eq.u32 %q2, %r1, 1; @%q2 bra $pop;"
           "atom.global.add.u32 %r2, [%p0], 1; mul.wide.u32 %rd1, %r2, 8; add.u64 %rd1, %rd1, %p0;"
           "st.global.u32 [%rd1+512], %block; mov.u32 %r3, 1; st." +
           release +
           ".global.u32 [%rd1+516], %r3; ret;"
           "$pop: atom.global.add.u32 %r2, [%p0+128], 1; mul.wide.u32 %rd1, %r2, 8; add.u64 %rd1, %rd1, %p0;"
           "ld." +
           acquire +
           ".global.u32 %r3, [%rd1+516]; setp.eq.u32 %q3, %r3, 0; @%q3 ret; ld.global.u32 %r4, [%rd1+512];"
           "st.global.u32 [%own+4096], %r4;";
  };
  expect_nothing(body("release.gpu", "acquire.gpu"), {12}, {32});
  expect_only("block-race", body("relaxed.gpu", "acquire.gpu"), {12}, {32});
  expect_only("block-race", body("release.gpu", "relaxed.gpu"), {12}, {32});
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

/// atomicAdd_block orders threads of a block alone.
TEST(Idioms, AtomicsOfTheBlocksScope) {
  const auto body = [](const std::string& address) {
    return kOfGrid + "mul.wide.u32 %rd1, %block, 4; add.u64 %rd1, %rd1, %p0; atom.cta.global.add.u32 %r1, [" + address +
           "], 1;";
  };
  expect_nothing(body("%rd1"), {4}, {64});
  expect_only("block-race", body("%p0"), {4}, {64});
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
