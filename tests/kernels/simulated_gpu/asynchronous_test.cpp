// SPDX-License-Identifier: Apache-2.0
// cp.async, mbarriers, tensor copies, and what must order them.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "kernels/simulated_gpu/units/tensor_map.h"
#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"

namespace gradring::simulated_gpu {
namespace {

/// 32 threads, with %to the address of 16 bytes of shared memory and %from of 16 bytes of global memory for each.
const std::string kCopies =
    ".reg .b32 %thread; .reg .b64 %from; .reg .b64 %out; .reg .pred %q<9>; .reg .b32 %r<9>; .reg .b32 %to; .reg .b64 "
    "%rd<9>;\n"
    ".shared .align 16 .b8 words[2048];\n"
    "mov.u32 %thread, %tid.x; shl.b32 %r1, %thread, 4; mov.u32 %to, words; add.u32 %to, %to, %r1;\n"
    "cvt.u64.u32 %from, %r1; add.u64 %out, %from, %p1; add.u64 %from, %from, %p0;\n";

std::vector<U32> counting(std::size_t count) {
  std::vector<U32> words(count);
  std::iota(words.begin(), words.end(), 0);
  return words;
}

std::vector<U32> copy(const std::string& body, unsigned threads = 32) {
  GlobalMemory memory;
  const DeviceArray<U32> from(memory, counting(threads * 4)), to(memory, std::vector<U32>(threads * 4, 99));
  TestKernel(kCopies + body, 2).run(memory, {from.address(), to.address()}, {}, {threads});
  return to.values();
}

const std::string kRead =
    "ld.shared.v4.u32 {%r1, %r2, %r3, %r4}, [%to]; st.global.v4.u32 [%out], {%r1, %r2, %r3, %r4};";

TEST(ThreadCopy, LandsWhenItsGroupIsWaitedFor) {
  EXPECT_EQ(copy("cp.async.cg.shared.global [%to], [%from], 16; cp.async.commit_group; cp.async.wait_group 0;" + kRead),
            counting(128));
  EXPECT_EQ(copy("cp.async.ca.shared.global [%to], [%from], 8; cp.async.ca.shared.global [%to+8], [%from+8], 8; "
                 "cp.async.wait_all;" +
                 kRead),
            counting(128));
  // The newest group may still be on its way: what it brings is not there.
  const std::string fault = fault_of([] {
    copy("cp.async.cg.shared.global [%to], [%from], 16; cp.async.commit_group; cp.async.wait_group 1;" + kRead);
  });
  EXPECT_NE(fault.find("shared memory is read before it is written"), fault.npos) << fault;
}

TEST(ThreadCopy, FillsWithZeros) {
  const std::vector<U32> words =
      copy("mov.u32 %r5, 4; cp.async.cg.shared.global [%to], [%from], 16, %r5; cp.async.wait_all;" + kRead);
  for (U32 i = 0; i < 32; ++i) {
    EXPECT_EQ(words[4 * i], 4 * i);
    EXPECT_EQ(words[4 * i + 3], 0u);
  }
}

TEST(ThreadCopy, MustNotOvertakeReadersOfWhatWasThere) {
  const std::string fill = "cp.async.cg.shared.global [%to], [%from], 16; cp.async.commit_group;";
  const std::string others = "xor.b32 %r7, %to, 512; ld.shared.u32 %r5, [%r7]; st.global.u32 [%out], %r5;";
  const std::string wait = "cp.async.wait_group 0; bar.sync 0;";
  EXPECT_EQ(copy(fill + wait + others + "bar.sync 0;" + fill + wait, 64).size(), 256u);
  const std::string fault = fault_of([&] { copy(fill + wait + others + fill + "bar.sync 0;" + wait, 64); });
  EXPECT_NE(fault.find("race in shared memory: 16 bytes"), fault.npos) << fault;
}

TEST(ThreadCopy, TargetMustNotBeReadBeforeItLands) {
  const std::string fill = "cp.async.cg.shared.global [%to], [%from], 16; cp.async.wait_all;";
  const std::string fault = fault_of([&] {
    copy(fill + "cp.async.cg.shared.global [%to], [%from], 16; ld.shared.u32 %r5, [%to]; cp.async.wait_all;" + kRead);
  });
  EXPECT_NE(fault.find("race in shared memory: 16 bytes"), fault.npos) << fault;
}

TEST(ThreadCopy, SourceMustBeInBounds) {
  const std::string fault = fault_of([] { copy("cp.async.cg.shared.global [%to], [%from+16], 16;"); });
  EXPECT_NE(fault.find("global memory is read out of bounds: 16 bytes"), fault.npos) << fault;
}

TEST(ThreadCopy, SourceMustBeAlignedEvenIfNothingIsRead) {
  for (const std::string source_size : {"16", "8", "0"}) {
    const auto copy_from = [&](const std::string& from) {
      return copy("mov.u32 %r5, " + source_size + "; cp.async.cg.shared.global [%to], [" + from +
                  "], 16, %r5; cp.async.wait_all;" + kRead);
    };
    EXPECT_EQ(copy_from("%from").size(), 128u);
    const std::string fault = fault_of([&] { copy_from("%from+-4"); });
    EXPECT_NE(fault.find("misaligned address in global memory: 16 bytes"), fault.npos) << fault;
  }
}

const std::string kBarrier =
    ".reg .pred %leader; .reg .b32 %bar; .shared .align 8 .b8 barriers[16]; mov.u32 %bar, barriers;\n"
    "setp.eq.u32 %leader, %thread, 0;\n";
const std::string kWait = "$wait: mbarrier.try_wait.parity.shared::cta.b64 %q1, [%bar], 0; @!%q1 bra $wait;\n";

TEST(Mbarrier, OrdersWarps) {
  // The upper warp writes and arrives, the lower one waits and reads.
  const std::string body = kBarrier +
                           "@%leader mbarrier.init.shared::cta.b64 [%bar], 32; bar.sync 0;\n"
                           "setp.lt.u32 %q2, %thread, 32; @%q2 bra $wait;\n"
                           "st.shared.u32 [%to], %thread; mbarrier.arrive.shared::cta.b64 _, [%bar]; ret;\n" +
                           kWait + "ld.shared.u32 %r1, [%to+512]; st.global.u32 [%out], %r1;";
  EXPECT_EQ(copy(body, 64)[4 * 5], 37u);
  std::string early = body;
  early.replace(early.find("st.shared.u32 [%to], %thread; mbarrier.arrive.shared::cta.b64 _, [%bar];"), 77,
                "mbarrier.arrive.shared::cta.b64 _, [%bar]; st.shared.u32 [%to], %thread;   ");
  const std::string fault = fault_of([&] { copy(early, 64); });
  EXPECT_TRUE(fault.find("race in shared memory") != fault.npos || fault.find("before it is written") != fault.npos)
      << fault;
}

/// Three warps read the first word and arrive; a thread of the fourth waits, and writes it.
std::string readers_and_a_writer(const std::string& count, const std::string& read_and_arrive) {
  return kBarrier + "@%leader mbarrier.init.shared::cta.b64 [%bar], " + count +
         "; mov.u32 %to, words; @%leader st.shared.u32 [%to], 1; bar.sync 0;\n"
         "setp.ge.u32 %q2, %thread, 96; @%q2 bra $wait;\n" +
         read_and_arrive + "ret;\n" + kWait + "setp.eq.u32 %q3, %thread, 100; @%q3 st.shared.u32 [%to], 2;";
}

TEST(Mbarrier, OrdersThoseWhoArrive) {
  const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%bar];";
  const std::string read = "ld.shared.u32 %r5, [%to];";
  copy(readers_and_a_writer("96", read + arrive), 128);
  // Warps 0 and 2 arrive after their read, warp 1 before it.
  const std::string fault = fault_of([&] {
    copy(readers_and_a_writer(
             "96", "shr.u32 %r6, %thread, 5; setp.eq.u32 %q4, %r6, 1; @!%q4 " + read + arrive + "@%q4 " + read),
         128);
  });
  EXPECT_NE(fault.find("race in shared memory"), fault.npos) << fault;
}

TEST(Mbarrier, IsReachedByALaneForItselfAlone) {
  const std::string lane = "and.b32 %r6, %thread, 31; setp.eq.u32 %q4, %r6, 0;";
  const std::string arrive = "@%q4 mbarrier.arrive.shared::cta.b64 _, [%bar];", read = "ld.shared.u32 %r5, [%to];";
  copy(readers_and_a_writer("3", lane + read + "bar.warp.sync 0xffffffff;" + arrive), 128);
  copy(readers_and_a_writer("3", lane + "@%q4 " + read + arrive), 128);
  const std::string fault = fault_of([&] { copy(readers_and_a_writer("3", lane + read + arrive), 128); });
  EXPECT_NE(fault.find("race in shared memory"), fault.npos) << fault;
}

TEST(Mbarrier, IsWaitedForByALaneForItselfAlone) {
  // Warp 1 writes and arrives; thread 0 waits, and all of warp 0 read.
  const auto body = [](const std::string& after) {
    return kBarrier +
           "@%leader mbarrier.init.shared::cta.b64 [%bar], 32; bar.sync 0;\n"
           "setp.lt.u32 %q2, %thread, 32; @%q2 bra $lower;\n"
           "st.shared.u32 [%to], %thread; mbarrier.arrive.shared::cta.b64 _, [%bar]; ret;\n"
           "$lower: @!%leader bra $after;\n" +
           kWait + "$after:" + after + "ld.shared.u32 %r1, [%to+512]; st.global.u32 [%out], %r1;";
  };
  EXPECT_EQ(copy(body("bar.warp.sync 0xffffffff;"), 64)[4 * 5], 37u);
  const std::string fault = fault_of([&] { copy(body(""), 64); });
  EXPECT_TRUE(fault.find("race in shared memory") != fault.npos || fault.find("before it is written") != fault.npos)
      << fault;
}

TEST(Mbarrier, FaultsNameTheInstruction) {
  const auto fault = [](const std::string& body) { return fault_of([&] { copy(kBarrier + body); }); };
  EXPECT_NE(fault("mbarrier.arrive.shared::cta.b64 _, [%bar];").find("mbarrier.arrive.shared::cta.b64 _, [%bar];"),
            std::string::npos);
  EXPECT_NE(
      fault("@%leader mbarrier.init.shared::cta.b64 [%bar], 1; ld.shared.u32 %r1, [%bar];").find("an mbarrier is read"),
      std::string::npos);
  const std::string hang = fault(
      "@%leader mbarrier.init.shared::cta.b64 [%bar], 2; bar.sync 0;\n"
      "@%leader mbarrier.arrive.shared::cta.b64 _, [%bar];\n" +
      kWait);
  EXPECT_NE(hang.find("an mbarrier is waited for that never completes"), hang.npos) << hang;
}

/// A matrix of 16 rows of 64 numbers of 16 bits; a copy brings rows 4 to 11.
class TensorCopy : public testing::Test {
 protected:
  TensorCopy() {
    const U64 sizes[] = {64, 16}, strides[] = {128};
    const U32 box[] = {64, 8}, steps[] = {1, 1};
    alignas(64) static unsigned char bytes[kTensorMapBytes];
    const TensorMapResult result = encode_tensor_map({.tensor_map = bytes,
                                                      .data_type = 1,
                                                      .rank = 2,
                                                      .address = matrix_.address(),
                                                      .sizes = sizes,
                                                      .strides_bytes = strides,
                                                      .box = box,
                                                      .element_strides = steps,
                                                      .swizzle = 0});
    EXPECT_EQ(result.code, TensorMapResult::kSuccess) << result.reason;
    map_.emplace(memory_, std::vector<unsigned char>(bytes, bytes + kTensorMapBytes));
  }

  std::vector<U16> run(const std::string& body, const std::string& fence = "fence.mbarrier_init.release.cluster;") {
    const std::string text =
        ".reg .b32 %thread; .reg .b64 %out; .reg .pred %q<9>; .reg .b32 %r<9>; .reg .b32 %to; .reg .b64 %rd<9>;\n"
        ".shared .align 128 .b8 words[1024];\n"
        "mov.u32 %thread, %tid.x; shl.b32 %r1, %thread, 4; mov.u32 %to, words; add.u32 %r2, %to, %r1;\n"
        "cvt.u64.u32 %out, %r1; add.u64 %out, %out, %p1; mov.u32 %r5, 0; mov.u32 %r6, 4;\n" +
        kBarrier + "@!%leader bra $ready; mbarrier.init.shared::cta.b64 [%bar], 1;" + fence + "$ready: bar.sync 0;\n" +
        body;
    DeviceArray<U16> results(memory_, std::vector<U16>(512));
    TestKernel(text, 2).run(memory_, {map_->address(), results.address()}, {}, {64});
    return results.values();
  }

  static std::vector<U16> numbers() {
    std::vector<U16> values(16 * 64);
    std::iota(values.begin(), values.end(), U16{0});
    return values;
  }

  GlobalMemory memory_;
  DeviceArray<U16> matrix_{memory_, numbers()};
  std::optional<DeviceArray<unsigned char>> map_;
};

const std::string kStart =
    "@!%leader bra $wait; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n"
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%to], [%p0, {%r5, %r6}], [%bar];\n";
const std::string kReadBox = "ld.shared.v2.u64 {%rd1, %rd2}, [%r2]; st.global.v2.u64 [%out], {%rd1, %rd2};";

TEST_F(TensorCopy, BringsABoxToThoseWhoWait) {
  const std::vector<U16> box = run(kStart + kWait + kReadBox);
  for (U16 i = 0; i < 512; ++i) ASSERT_EQ(box[i], 4 * 64 + i);
}

TEST_F(TensorCopy, IsNotThereForThoseWhoDoNotWait) {
  const std::string fault = fault_of([&] { run(kStart + "$wait:" + kReadBox); });
  EXPECT_NE(fault.find("shared memory is read before it is written"), fault.npos) << fault;
}

TEST_F(TensorCopy, WantsTheFenceOfItsMbarrier) {
  const std::string fault = fault_of([&] { run(kStart + kWait + kReadBox, ""); });
  EXPECT_NE(fault.find("without fence.mbarrier_init"), fault.npos) << fault;
}

TEST_F(TensorCopy, WantsAFenceAfterGenericWritesToItsTarget) {
  const std::string clear = "st.shared.v4.u32 [%r2], {%r5, %r5, %r5, %r5};";
  run(clear + "fence.proxy.async.shared::cta; bar.sync 0;" + kStart + kWait + kReadBox);
  const std::string fault = fault_of([&] { run(clear + "bar.sync 0;" + kStart + kWait + kReadBox); });
  EXPECT_NE(fault.find("is written asynchronously without fence.proxy.async"), fault.npos) << fault;
}

TEST_F(TensorCopy, NeverCompletesWithTheWrongNumberOfBytes) {
  std::string text = kStart;
  text.replace(text.find("1024"), 4, "2048");
  const std::string fault = fault_of([&] { run(text + kWait + kReadBox); });
  EXPECT_NE(fault.find("never completes"), fault.npos) << fault;
}

TEST_F(TensorCopy, MustNotOvertakeReadersOfWhatWasThere) {
  // Thread 0 starts the next round at once, the others still read; with a barrier it may.
  const std::string again =
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 1024;\n"
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%to], [%p0, {%r5, %r6}], [%bar];\n"
      "$again: mbarrier.try_wait.parity.shared::cta.b64 %q1, [%bar], 1; @!%q1 bra $again; $end: ret;";
  const std::string fault = fault_of([&] { run(kStart + kWait + kReadBox + "@!%leader bra $end;" + again); });
  EXPECT_NE(fault.find("race in shared memory: 16 bytes"), fault.npos) << fault;
  run(kStart + kWait + kReadBox + "bar.sync 0; @!%leader bra $end;" + again);
}

}  // namespace
}  // namespace gradring::simulated_gpu
