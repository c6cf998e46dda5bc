// SPDX-License-Identifier: Apache-2.0
// What strong accesses to shared memory order: correct programs of which nothing is reported, each beside the same one
// with a defect.
#include "tests/kernels/simulated_gpu/idioms.h"

namespace gradring::simulated_gpu {
namespace {

const Extent kThreeWarps{96};

/// words[0] is 0; behind it thread 0, 32 and 64 execute these, of which each ends the thread.
std::string by_leaders(const std::string& first, const std::string& second, const std::string& third = "") {
  return kSharedWords + kThread + kOwnWord +
         "setp.eq.u32 %q1, %thread, 0; @%q1 st.shared.u32 [%word], 0; bar.sync 0; setp.eq.u32 %q2, %thread, 32;"
         "setp.eq.u32 %q3, %thread, 64; @%q1 bra $first; @%q2 bra $second; @%q3 bra $third; ret;"
         "$first: " +
         first + "ret; $second: " + second + "ret; $third: " + third + "ret;";
}

/// Until words[0] is `value`.
std::string until(const std::string& load, int value) {
  const std::string label = "$until" + std::to_string(value);
  return label + ": " + load + " %r1, [%r7]; setp.ne.u32 %q4, %r1, " + std::to_string(value) + "; @%q4 bra " + label +
         ";";
}

const std::string kStoreData = "st.shared.u32 [%r7+4], 42;";
const std::string kLoadData = "ld.shared.u32 %r2, [%r7+4]; st.global.u32 [%address], %r2;";

std::string handed_over(const std::string& store, const std::string& load, const std::string& after_load = "") {
  return by_leaders(kStoreData + store + " [%r7], 1;", until(load, 1) + after_load + kLoadData);
}

TEST(SharedOrder, AReleaseIsAcquired) {
  const std::string body = handed_over("st.release.cta.shared.u32", "ld.acquire.cta.shared.u32");
  expect_nothing(body, {}, kThreeWarps);
  EXPECT_EQ(run(body, {}, kThreeWarps).words[32], 42u);
  expect_nothing(handed_over("st.release.gpu.shared.u32", "ld.acquire.sys.shared.u32"), {}, kThreeWarps);
  expect_only("shared-race", handed_over("st.relaxed.cta.shared.u32", "ld.acquire.cta.shared.u32"), {}, kThreeWarps);
  expect_only("shared-race", handed_over("st.release.cta.shared.u32", "ld.relaxed.cta.shared.u32"), {}, kThreeWarps);
}

TEST(SharedOrder, FencesMakeRelaxedAccessesOrder) {
  const std::string store = "st.relaxed.cta.shared.u32", load = "ld.relaxed.cta.shared.u32", fence = "membar.cta;";
  expect_nothing(handed_over(fence + store, load, fence), {}, kThreeWarps);
  expect_nothing(handed_over("fence.acq_rel.gpu;" + store, load, "fence.sc.cta;"), {}, kThreeWarps);
  expect_only("shared-race", handed_over(fence + store, load), {}, kThreeWarps);
  expect_only("shared-race", handed_over(store, load, fence), {}, kThreeWarps);
  const std::string stored_behind_the_fence =
      by_leaders(fence + kStoreData + store + " [%r7], 1;", until(load, 1) + fence + kLoadData);
  expect_only("shared-race", stored_behind_the_fence, {}, kThreeWarps);
}

TEST(SharedOrder, OfPlainAndVolatileAccessesNothingIsKnown) {
  for (const std::string word : {"", ".volatile"})
    expect_only("shared-race", handed_over("membar.cta; st" + word + ".shared.u32", "ld.acquire.cta.shared.u32"), {},
                kThreeWarps);
}

TEST(SharedOrder, AtomicsPassOnWhatARelaxedStoreEnds) {
  const auto body = [](const std::string& in_between) {
    return by_leaders(kStoreData + "st.release.cta.shared.u32 [%r7], 1;",
                      until("ld.relaxed.cta.shared.u32", 1) + in_between,
                      until("ld.acquire.cta.shared.u32", 2) + kLoadData);
  };
  expect_nothing(body("red.relaxed.cta.shared.add.u32 [%r7], 1;"), {}, kThreeWarps);
  expect_only("shared-race", body("st.relaxed.cta.shared.u32 [%r7], 2;"), {}, kThreeWarps);
}

TEST(SharedOrder, ALockGuardsPlainAccesses) {
  const auto body = [](const std::string& unlock) {
    const std::string guarded =
        "{ .reg .pred %taken; $try: atom.acquire.cta.shared.cas.b32 %r1, [%r7], 0, 1; setp.ne.u32 %taken, %r1, 0;"
        "@%taken bra $try; ld.shared.u32 %r2, [%r7+4]; add.u32 %r2, %r2, 1; st.shared.u32 [%r7+4], %r2;" +
        unlock + "ret; }";
    return kSharedWords + kThread + kOwnWord +
           "setp.lt.u32 %q1, %thread, 2; @%q1 st.shared.u32 [%word], 0; bar.sync 0;" + guarded;
  };
  expect_nothing(body("atom.release.cta.shared.exch.b32 %r3, [%r7], 0;"), {}, kThreeWarps);
  expect_nothing(body("membar.cta; atom.shared.exch.b32 %r3, [%r7], 0;"), {}, kThreeWarps);
  expect_only("shared-race", body("atom.shared.exch.b32 %r3, [%r7], 0;"), {}, kThreeWarps);
}

/// cuda::latch: each thread counts down, and waits for all.
TEST(SharedOrder, ALatchIsABarrier) {
  const auto body = [](const std::string& word) {
    return kSharedWords + kThread + kOwnWord +
           "setp.eq.u32 %q1, %thread, 0; @%q1 st.relaxed.cta.shared.u32 [%r7+2048], 96; bar.sync 0;"
           "st.shared.u32 [%word], %thread; atom." +
           word +
           ".cta.shared.add.u32 %r1, [%r7+2048], -1;"
           "$wait: ld.acquire.cta.shared.u32 %r1, [%r7+2048]; setp.ne.u32 %q2, %r1, 0; @%q2 bra $wait;"
           "shl.b32 %r2, %thread, 2; sub.u32 %r2, 380, %r2; add.u32 %r2, %r2, %r7; ld.shared.u32 %r3, [%r2];"
           "st.global.u32 [%address], %r3;";
  };
  expect_nothing(body("release"), {}, kThreeWarps);
  EXPECT_EQ(run(body("release"), {}, kThreeWarps).words[10], 85u);
  expect_only("shared-race", body("relaxed"), {}, kThreeWarps);
}

TEST(SharedOrder, AThreadReleasesWhatItKnows) {
  const auto body = [](const std::string& barrier) {
    return kSharedWords + kThread + kOwnWord +
           "setp.eq.u32 %q1, %thread, 0; @%q1 st.shared.u32 [%r7+2048], 0; bar.sync 0; setp.ge.u32 %q2, %thread, 32;"
           "@%q2 bra $other; st.shared.u32 [%word], %thread;" +
           barrier +
           "@%q1 st.release.cta.shared.u32 [%r7+2048], 1; ret;"
           "$other: ld.acquire.cta.shared.u32 %r1, [%r7+2048]; setp.ne.u32 %q3, %r1, 1; @%q3 bra $other;"
           "ld.shared.u32 %r2, [%r7+20]; st.global.u32 [%address], %r2;";
  };
  expect_nothing(body("bar.warp.sync -1;"), {}, {64});
  expect_only("shared-race", body(""), {}, {64});
}

TEST(SharedOrder, StrongAccessesRaceWithPlainOnes) {
  const std::string count = "atom.shared.add.u32 %r1, [%r7], 1;";
  expect_nothing(by_leaders(count, "ld.relaxed.cta.shared.u32 %r1, [%r7];", "st.relaxed.cta.shared.u32 [%r7], 3;"), {},
                 kThreeWarps);
  for (const std::string strong : {count.c_str(), "st.relaxed.cta.shared.u32 [%r7], 3;"})
    expect_only("shared-race", by_leaders(strong, "ld.shared.u32 %r1, [%r7];"), {}, kThreeWarps);
  for (const std::string strong :
       {count.c_str(), "st.relaxed.cta.shared.u32 [%r7], 3;", "ld.relaxed.cta.shared.u32 %r1, [%r7];"})
    expect_only("shared-race", by_leaders(strong, "st.shared.u32 [%r7], 4;"), {}, kThreeWarps);
}

/// A strong store is a write, too: the next block has not written what this one has.
TEST(SharedOrder, AStrongStoreWrites) {
  const auto body = [](const std::string& store) {
    return kSharedWords + kThread + kOwnWord + store + "ld.relaxed.cta.shared.u32 %r1, [%word];";
  };
  expect_nothing(body("st.relaxed.cta.shared.u32 [%word], 1;"), {2}, {32});
  expect_only("not-written", body(""), {2}, {32});
}

}  // namespace
}  // namespace gradring::simulated_gpu
