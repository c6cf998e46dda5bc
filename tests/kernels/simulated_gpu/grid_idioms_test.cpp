// SPDX-License-Identifier: Apache-2.0
// Idioms of correct CUDA programs, of which nothing is reported, each beside the same program with a defect: the order
// between blocks.
#include "tests/kernels/simulated_gpu/idioms.h"

namespace gradring::simulated_gpu {
namespace {

TEST(GridIdioms, ReadOnlyLoadsOfWhatNobodyWrites) {
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

TEST(GridIdioms, LastBlockReduction) {
  expect_nothing(last_block("membar.gl;", "fence.acq_rel.gpu;", "ld.global.u32"), {8}, {64});
  expect_only("block-race", last_block("", "", "ld.global.u32"), {8}, {64});
  expect_only("block-race", last_block("fence.acq_rel.cta;", "fence.acq_rel.gpu;", "ld.global.u32"), {8}, {64});
  expect_nothing(last_block("membar.gl;", "", "ld.global.u32"), {8}, {64});  // as threadFenceReduction
}

/// The same by cuda::atomic_ref with acq_rel.
TEST(GridIdioms, LastBlockByAcquireAndRelease) {
  const std::string body = last_block("", "", "ld.global.u32");
  const std::string plain = "atom.global.inc.u32";
  std::string ordered = body;
  ordered.replace(ordered.find(plain), plain.size(), "atom.acq_rel.gpu.global.inc.u32");
  expect_nothing(ordered, {8}, {64});
}

/// A fence that publishes nothing of what comes after it.
TEST(GridIdioms, FencesOrderWhatCameBefore) {
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

TEST(GridIdioms, FlagByReleaseAndAcquire) {
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
TEST(GridIdioms, FlagsInAChain) {
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
TEST(GridIdioms, LookBackScanByOneWord) {
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
TEST(GridIdioms, AtomicAddOfDoubleByCompareAndSwap) {
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

TEST(GridIdioms, LocksWithFences) {
  const std::string fence = "membar.gl;";
  const std::string unlock = "atom.global.exch.b32 %r3, [%p0], 0;";
  const std::string volatile_unlock = "mov.u32 %r4, 0; st.volatile.global.u32 [%p0], %r4;";
  expect_nothing(locked(fence, fence, unlock), {7}, {32});
  EXPECT_EQ(run(locked(fence, fence, unlock), {7}, {32}).words[16], 7u);
  expect_nothing(locked(fence, fence, volatile_unlock), {7}, {32});
  expect_nothing(locked(fence, "", "mov.u32 %r4, 0; st.release.gpu.global.u32 [%p0], %r4;"), {7}, {32});
  expect_only("block-race", locked(fence, "", unlock), {7}, {32});
  expect_only("block-race", locked("", "", unlock), {7}, {32});
}

/// A lock-free stack of nodes (value, next): push by atom.cas after a fence, pop by one block at the end of its work.
TEST(GridIdioms, LockFreeStack) {
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
TEST(GridIdioms, QueueOfSlots) {
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

/// atomicAdd_block orders threads of a block alone.
TEST(GridIdioms, AtomicsOfTheBlocksScope) {
  const auto body = [](const std::string& address) {
    return kOfGrid + "mul.wide.u32 %rd1, %block, 4; add.u64 %rd1, %rd1, %p0; atom.cta.global.add.u32 %r1, [" + address +
           "], 1;";
  };
  expect_nothing(body("%rd1"), {4}, {64});
  expect_only("block-race", body("%p0"), {4}, {64});
}

}  // namespace
}  // namespace gradring::simulated_gpu
