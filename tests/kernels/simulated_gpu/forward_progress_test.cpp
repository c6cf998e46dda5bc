// SPDX-License-Identifier: Apache-2.0
// Blocks, warps and lanes that wait for each other, and what waits for ever.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// %r1: the index of the block, %r2: the number of blocks. %q1: the first thread of a block.
const std::string kBlock =
    ".reg .b32 %thread; .reg .b64 %address; .reg .pred %q<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>;\n"
    "mov.u32 %thread, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; setp.eq.u32 %q1, %thread, 0;\n";

/// As compiled code has it: a thread of each block counts it in %p0[0], and waits until all are counted.
const std::string kGridBarrier =
    "bar.sync 0; membar.gl;\n"
    "@!%q1 bra $passed;\n"
    "atom.global.add.u32 %r3, [%p0], 1;\n"
    "$poll: ld.volatile.global.u32 %r4, [%p0]; setp.lt.u32 %q2, %r4, %r2; @%q2 bra $poll;\n"
    "$passed: membar.gl; bar.sync 0;\n";

struct GridBarrier {
  GlobalMemory memory;
  DeviceArray<U32> words{memory, std::vector<U32>(1, 0)};
  DeviceArray<U32> results{memory, std::vector<U32>(64, 0)};
  /// Each block stores its index and 1; after the barrier, the sum of all goes to its second word.
  TestKernel kernel{kBlock +
                        "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %p1, %rd1; add.u32 %r5, %r1, 1;\n"
                        "@%q1 st.global.u32 [%rd2], %r5;\n" +
                        kGridBarrier +
                        "mov.u32 %r6, 0; mov.u32 %r7, 0; mov.u64 %rd3, %p1;\n"
                        "$sum: ld.global.u32 %r8, [%rd3]; add.u32 %r6, %r6, %r8; add.u64 %rd3, %rd3, 4;\n"
                        "add.u32 %r7, %r7, 1; setp.lt.u32 %q3, %r7, %r2; @%q3 bra $sum;\n"
                        "@%q1 st.global.u32 [%rd2+128], %r6;",
                    2};

  void run(unsigned blocks, std::uint64_t most_resident_blocks, const ExecutionOptions& options) {
    kernel.run(memory, {words.address(), results.address()}, {blocks}, {70}, options, 0, most_resident_blocks);
  }
};

TEST(ForwardProgress, BlocksMeetAtABarrierByAtomics) {
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const unsigned threads : {1u, 3u}) {
      GridBarrier barrier;
      barrier.run(20, 20, {.seed = seed, .threads = threads});
      const std::vector<U32> results = barrier.results.values();
      for (unsigned block = 0; block < 20; ++block) ASSERT_EQ(results[32 + block], 210u) << "seed " << seed;
    }
}

TEST(ForwardProgress, ABarrierOfMoreBlocksThanAreResidentIsReported) {
  for (const unsigned threads : {1u, 3u}) {
    GridBarrier barrier;
    const std::string text =
        fault_of([&] { barrier.run(20, 19, {.threads = threads, .most_idle_instructions = 1u << 16}); });
    EXPECT_EQ(text.find("no progress: memory did not change and no barrier completed for 65536 instructions and 100 "
                        "turns of each of 19 resident blocks, and 1 block of the grid has not begun, because the GPU "
                        "holds 19 at once, by thread (0, 0, 0) of block ("),
              0u)
        << text;
    EXPECT_NE(text.find("ld.volatile.global.u32 %r4, [%p0];\n   waiting for memory to change: 19 threads of 19 blocks"),
              text.npos)
        << text;
    EXPECT_NE(text.find("waiting at a barrier: 1311 threads of 19 blocks, bar.sync 0;"), text.npos) << text;
  }
}

/// A look-back scan: each block adds its index to the sum of the block before it, when that is known.
const std::string kScan =
    kBlock +
    "@!%q1 ret;\n"
    "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %p0, %rd1; add.u64 %rd3, %p1, %rd1; mov.u32 %r5, 0;\n"
    "setp.eq.u32 %q2, %r1, 0; @%q2 bra $known;\n"
    "$poll: ld.acquire.gpu.global.u32 %r4, [%rd2+-4]; setp.eq.u32 %q3, %r4, 0; @%q3 bra $poll;\n"
    "membar.gl; ld.global.u32 %r5, [%rd3+-4];\n"
    "$known: add.u32 %r5, %r5, %r1; st.global.u32 [%rd3], %r5; membar.gl;\n"
    "mov.u32 %r6, 1; st.release.gpu.global.u32 [%rd2], %r6;";

TEST(ForwardProgress, ALookBackScanEndsInEveryOrder) {
  const TestKernel kernel(kScan, 2);
  for (const std::uint64_t most_resident_blocks : {200, 7, 1})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      GlobalMemory memory;
      DeviceArray<U32> flags(memory, std::vector<U32>(200, 0));
      DeviceArray<U32> sums(memory, 200);
      const unsigned threads = 1 + static_cast<unsigned>(seed % 3);
      kernel.run(memory, {flags.address(), sums.address()}, {200}, {32}, {.seed = seed, .threads = threads}, 0,
                 most_resident_blocks);
      const std::vector<U32> results = sums.values();
      for (U32 block = 0; block < 200; ++block) ASSERT_EQ(results[block], block * (block + 1) / 2) << "seed " << seed;
    }
}

/// Each thread adds 1 to %p0[1] while it has the lock in %p0[0].
const std::string kLockByLane =
    kBlock +
    "$take: atom.global.cas.b32 %r3, [%p0], 0, 1; setp.ne.u32 %q2, %r3, 0; @%q2 bra $take;\n"
    "membar.gl; ld.volatile.global.u32 %r4, [%p0+4]; add.u32 %r4, %r4, 1; st.volatile.global.u32 [%p0+4], %r4;\n"
    "membar.gl; atom.global.exch.b32 %r5, [%p0], 0;";
/// The same as "bool done = false; while (!done) if (taken) { ...; done = true; }", with the body behind the loop.
const std::string kLockWithFlag =
    kBlock +
    "mov.u32 %r6, 0;\n"
    "$loop: setp.ne.u32 %q3, %r6, 0; @%q3 bra $end;\n"
    "atom.global.cas.b32 %r3, [%p0], 0, 1; setp.eq.u32 %q2, %r3, 0; @%q2 bra $taken; bra $loop;\n"
    "$taken: membar.gl; ld.volatile.global.u32 %r4, [%p0+4]; add.u32 %r4, %r4, 1;\n"
    "st.volatile.global.u32 [%p0+4], %r4; membar.gl; st.volatile.global.u32 [%p0], 0; mov.u32 %r6, 1; bra $loop;\n"
    "$end:";

TEST(ForwardProgress, EachLaneTakesALock) {
  for (const std::string& body : {kLockByLane, kLockWithFlag}) {
    const TestKernel kernel(body, 1);
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      GlobalMemory memory;
      DeviceArray<U32> words(memory, std::vector<U32>(2, 0));
      const unsigned threads = 1 + static_cast<unsigned>(seed % 3);
      kernel.run(memory, {words.address()}, {3}, {100}, {.seed = seed, .threads = threads});
      ASSERT_EQ(words.values(), (std::vector<U32>{0, 300})) << "seed " << seed;
    }
  }
}

TEST(ForwardProgress, BlocksTakeALock) {
  const TestKernel kernel(kBlock +
                              "@!%q1 bra $taken;\n"
                              "$take: atom.global.cas.b32 %r3, [%p0], 0, 1; setp.ne.u32 %q2, %r3, 0;\n"
                              "@%q2 nanosleep.u32 20; @%q2 bra $take;\n"
                              "$taken: membar.gl; bar.sync 0;\n"
                              "mul.wide.u32 %rd1, %thread, 4; add.u64 %rd2, %p1, %rd1;\n"
                              "ld.global.u32 %r4, [%rd2]; add.u32 %r4, %r4, 1; st.global.u32 [%rd2], %r4;\n"
                              "membar.gl; bar.sync 0; @%q1 atom.global.exch.b32 %r5, [%p0], 0;",
                          2);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GlobalMemory memory;
    DeviceArray<U32> lock(memory, std::vector<U32>(1, 0));
    DeviceArray<U32> counts(memory, std::vector<U32>(64, 0));
    const unsigned threads = 1 + static_cast<unsigned>(seed % 3);
    kernel.run(memory, {lock.address(), counts.address()}, {30}, {64}, {.seed = seed, .threads = threads});
    ASSERT_EQ(counts.values(), std::vector<U32>(64, 30)) << "seed " << seed;
  }
}

/// Block 0 waits for block 1, which computes for long.
TEST(ForwardProgress, ALongWaitIsNotReported) {
  const TestKernel kernel(kBlock +
                              "setp.eq.u32 %q2, %r1, 0; @%q2 bra $consumer;\n"
                              "mov.u32 %r3, 0;\n"
                              "$compute: add.u32 %r3, %r3, 1; setp.lt.u32 %q3, %r3, 10000000; @%q3 bra $compute;\n"
                              "st.global.u32 [%p0+4], %r3; membar.gl; mov.u32 %r4, 1;\n"
                              "st.release.gpu.global.u32 [%p0], %r4; ret;\n"
                              "$consumer: ld.acquire.gpu.global.u32 %r5, [%p0]; setp.eq.u32 %q4, %r5, 0;\n"
                              "@%q4 bra $consumer; membar.gl; ld.global.u32 %r6, [%p0+4]; st.global.u32 [%p0+8], %r6;",
                          1);
  for (const auto& [threads, seed] : {std::pair{1u, 0u}, {2u, 0u}, {1u, 7u}}) {
    GlobalMemory memory;
    DeviceArray<U32> words(memory, std::vector<U32>(3, 0));
    kernel.run(memory, {words.address()}, {2}, {1}, {.seed = seed, .threads = threads, .most_idle_instructions = 1000});
    EXPECT_EQ(words.values()[2], 10000000u);
  }
}

TEST(ForwardProgress, AFlagThatNobodySetsIsReported) {
  const TestKernel kernel(kBlock +
                              "@!%q1 bra $end;\n"
                              "$poll: ld.acquire.gpu.global.u32 %r3, [%p0+4]; nanosleep.u32 100;\n"
                              "setp.eq.u32 %q2, %r3, 0; @%q2 bra $poll;\n"
                              "$end: st.volatile.global.u32 [%p0], %r2; bar.sync 0;",
                          1);
  GlobalMemory memory;
  DeviceArray<U32> words(memory, std::vector<U32>(2, 0));
  const std::string text =
      fault_of([&] { kernel.run(memory, {words.address()}, {3}, {64}, {.most_idle_instructions = 1u << 16}); });
  EXPECT_NE(text.find("no progress: "), text.npos) << text;
  EXPECT_NE(
      text.find("ld.acquire.gpu.global.u32 %r3, [%p0+4];\n   waiting for memory to change: 3 threads of 3 blocks"),
      text.npos)
      << text;
  EXPECT_NE(text.find("waiting at a barrier: 189 threads of 3 blocks, bar.sync 0;"), text.npos) << text;
}

/// Block 0 has lock 0 and wants lock 1, block 1 has lock 1 and wants lock 0. While a block waits it stores what is
/// there already.
TEST(ForwardProgress, TwoLocksInBothOrdersAreReported) {
  const TestKernel kernel(
      kBlock +
          "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %p0, %rd1; xor.b32 %r3, %r1, 1; mul.wide.u32 %rd3, %r3, 4;\n"
          "add.u64 %rd4, %p0, %rd3;\n"
          "atom.global.exch.b32 %r4, [%rd2], 1;\n"
          "$both: ld.volatile.global.u32 %r5, [%rd4]; setp.eq.u32 %q2, %r5, 0; @%q2 bra $both;\n"
          "$take: st.global.u32 [%p1], %r2; atom.global.cas.b32 %r6, [%rd4], 0, 1; setp.ne.u32 %q3, %r6, 0;\n"
          "@%q3 bra $take;",
      2);
  GlobalMemory memory;
  DeviceArray<U32> locks(memory, std::vector<U32>(2, 0));
  DeviceArray<U32> word(memory, std::vector<U32>(1, 0));
  const std::string text = fault_of([&] {
    kernel.run(memory, {locks.address(), word.address()}, {2}, {1}, {.most_idle_instructions = 1u << 16});
  });
  EXPECT_NE(text.find("no progress: "), text.npos) << text;
  EXPECT_NE(text.find("atom.global.cas.b32 %r6, [%rd4], 0, 1;\n   waiting for memory to change: 2 threads of 2 blocks"),
            text.npos)
      << text;
}

/// Lanes 0 and 1 poll at different instructions; lanes 2 and 3 meet at another one, and lane 2 sets the flag.
TEST(ForwardProgress, LanesOfAWarpWaitForEachOther) {
  GlobalMemory memory;
  DeviceArray<U32> words(memory, std::vector<U32>(2, 0));
  TestKernel(kBlock +
                 "setp.gt.u32 %q2, %thread, 1; @%q2 bra $pair; setp.eq.u32 %q3, %thread, 1; @%q3 bra $set;\n"
                 "$poll: ld.relaxed.gpu.global.u32 %r3, [%p0]; setp.ne.u32 %q4, %r3, 7; @%q4 bra $poll;\n"
                 "st.volatile.global.u32 [%p0+4], %r3; ret;\n"
                 "$pair: bar.warp.sync 12; setp.eq.u32 %q5, %thread, 2; @!%q5 ret;\n"
                 "mov.u32 %r4, 7; st.relaxed.gpu.global.u32 [%p0], %r4; ret;\n"
                 "$set: ld.relaxed.gpu.global.u32 %r3, [%p0]; setp.ne.u32 %q4, %r3, 7; @%q4 bra $set;",
             1)
      .run(memory, {words.address()}, {}, {4});
  EXPECT_EQ(words.values(), (std::vector<U32>{7, 7}));
}

/// Lane 0 waits for memory, and the others for an mbarrier.
TEST(ForwardProgress, LanesThatWaitForDifferentThingsAreReported) {
  const TestKernel kernel(kBlock +
                              ".shared .align 8 .b8 barrier[8]; mov.u32 %r3, barrier;\n"
                              "@%q1 mbarrier.init.shared.b64 [%r3], 1; bar.warp.sync -1; @%q1 bra $poll;\n"
                              "$wait: mbarrier.try_wait.parity.shared.b64 %q2, [%r3], 0; @!%q2 bra $wait; ret;\n"
                              "$poll: ld.volatile.global.u32 %r4, [%p0]; setp.eq.u32 %q3, %r4, 0; @%q3 bra $poll;",
                          1);
  GlobalMemory memory;
  DeviceArray<U32> word(memory, std::vector<U32>(1, 0));
  const std::string text =
      fault_of([&] { kernel.run(memory, {word.address()}, {}, {32}, {.most_idle_instructions = 1u << 16}); });
  EXPECT_EQ(text.find("no progress: "), 0u) << text;
  EXPECT_NE(text.find("waiting for memory to change: 1 thread of 1 block"), text.npos) << text;
  EXPECT_NE(text.find("waiting for a phase to complete: 31 threads of 1 block, mbarrier.try_wait"), text.npos) << text;
}

/// As cuda::barrier waits: mbarriers that are looked at between sleeps. With a seed, turns end amid looks.
TEST(ForwardProgress, SleepsBetweenLooksAreReported) {
  const TestKernel kernel(".shared .align 8 .b64 mbarrier;\n" + kBlock +
                              "mov.u32 %r3, mbarrier; @%q1 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;\n"
                              "$poll: mbarrier.try_wait.parity.shared.b64 %q2, [%r3], 0; @%q2 bra $end;\n"
                              "mov.u64 %rd1, %globaltimer; nanosleep.u32 1000; bra $poll;\n"
                              "$end: st.global.u32 [%p0], %r2;",
                          1);
  for (const std::uint64_t seed : {0u, 1u, 2u, 3u}) {
    GlobalMemory memory;
    DeviceArray<U32> word(memory, std::vector<U32>(1, 0));
    const std::string text = fault_of([&] {
      kernel.run(memory, {word.address()}, {16}, {128},
                 {.seed = seed, .most_idle_instructions = std::uint64_t{1} << 20});
    });
    EXPECT_EQ(text.find(seed == 0 ? "deadlock: " : "no progress: "), 0u) << text;
  }
}

/// Loops that look by weak loads, or not at all: they are found by what they leave unchanged.
TEST(ForwardProgress, WeakLoadsWait) {
  const TestKernel kernel(kBlock +
                              "mul.wide.u32 %rd1, %r1, 4; add.u64 %rd2, %p0, %rd1; mov.u32 %r5, 1;\n"
                              "setp.eq.u32 %q2, %r1, 0; @%q2 bra $set;\n"
                              "$poll: ld.global.u32 %r3, [%rd2+-4]; mov.u32 %r4, 0;\n"
                              "$inner: add.u32 %r4, %r4, 1; setp.lt.u32 %q4, %r4, 3; @%q4 bra $inner;\n"
                              "st.global.u32 [%p1], %r2; setp.eq.u32 %q3, %r3, 0; @%q3 bra $poll;\n"
                              "$set: st.global.u32 [%rd2], %r5;",
                          2);
  GlobalMemory memory;
  DeviceArray<U32> flags(memory, std::vector<U32>(4, 0));
  DeviceArray<U32> word(memory, std::vector<U32>(1, 4));
  // The last block begins first with some seeds, and waits for the others.
  for (std::uint64_t seed = 0; seed < 3; ++seed)
    kernel.run(memory, {flags.address(), word.address()}, {4}, {1}, {.seed = seed, .checks_races = false});
  EXPECT_EQ(flags.values(), std::vector<U32>(4, 1));
}

TEST(ForwardProgress, LoopsThatChangeNothingAreReported) {
  for (const std::string loop : {"$loop: bra $loop;", "$loop: ld.global.u32 %r3, [%p0]; bra $loop;",
                                 "$loop: st.global.u32 [%p0], %thread; bar.sync 0; bra $loop;"}) {
    GlobalMemory memory;
    DeviceArray<U32> words(memory, std::vector<U32>(1, 0));
    const bool has_barrier = loop.find("bar.sync") != loop.npos;
    const std::string text = fault_of([&] {
      TestKernel(kBlock + loop, 1)
          .run(memory, {words.address()}, {2}, {1}, {.most_instructions = 1u << (has_barrier ? 16 : 26)});
    });
    EXPECT_EQ(text.find(has_barrier ? "the block does not end" : "no progress: "), 0u) << text;
  }
}

/// A thread waits by an atomic that returns what it returned before.
TEST(ForwardProgress, AtomicsThatChangeNothingWait) {
  constexpr U32 kNotANumber = 0x7fc00000;
  for (const std::string poll : {"atom.global.add.noftz.f16x2 %r3, [%p0], %r6; setp.ne.u32 %q2, %r3, 0;",
                                 "atom.global.add.f32 %f1, [%p0+4], 0f00000000; setp.eq.f32 %q2, %f1, %f1;",
                                 "atom.global.exch.b32 %r3, [%p0+4], %r7; setp.ne.u32 %q2, %r3, %r7;"}) {
    const TestKernel kernel(
        kBlock + ".reg .f32 %f<2>; mov.u32 %r6, 0; mov.u32 %r7, 2143289344;\n$poll: " + poll + " @!%q2 bra $poll;", 1);
    GlobalMemory memory;
    const DeviceArray<U32> words(memory, std::vector<U32>{0, kNotANumber});
    const std::string text = fault_of([&] {
      kernel.run(memory, {words.address()}, {2}, {1},
                 {.most_instructions = 1u << 22, .most_idle_instructions = 1u << 16});
    });
    EXPECT_EQ(text.find("no progress: "), 0u) << poll << text;
  }
}

/// Warp 1 sets a flag in shared memory when warp 0 has begun to wait for it; both go on to one barrier.
TEST(ForwardProgress, WarpsOfABlockWaitForEachOther) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GlobalMemory memory;
    DeviceArray<U32> words(memory, std::vector<U32>(1, 0));
    TestKernel(kBlock +
                   ".shared .align 4 .b8 flag[4]; mov.u32 %r3, flag; @%q1 st.shared.u32 [%r3], 0; bar.sync 0;\n"
                   "@%q1 bra $poll; setp.ne.u32 %q2, %thread, 32; @%q2 bra $end;\n"
                   "atom.shared.add.u32 %r4, [%r3], 1; bra $end;\n"
                   "$poll: atom.shared.or.b32 %r5, [%r3], 0; setp.eq.u32 %q3, %r5, 0; @%q3 bra $poll;\n"
                   "$end: bar.sync 0; @%q1 st.global.u32 [%p0], %r5;",
               1)
        .run(memory, {words.address()}, {}, {64}, {.seed = seed});
    ASSERT_EQ(words.values()[0], 1u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace gradring::simulated_gpu
