// SPDX-License-Identifier: Apache-2.0
// cp.async.bulk to and from shared memory, cp.reduce.async.bulk, cp.async.mbarrier.arrive: values, and what is missing.
#include <gtest/gtest.h>

#include "tests/kernels/simulated_gpu/simulation.h"
#include "tests/kernels/simulated_gpu/values.h"
#include "tests/kernels/simulated_gpu/words.h"

namespace gradring::simulated_gpu {
namespace {

/// 32 threads, 32 words behind %p0 (0, 1, ...) and behind %p1 (100 each). %leader is thread 0.
const std::string kBulkBegin =
    kThread +
    ".shared .align 128 .b8 buffer[128]; .shared .align 8 .b8 bar[8]; .reg .pred %leader;\n"
    "mov.u32 %r1, buffer; mov.u32 %r2, bar; shl.b32 %r3, %thread, 2; add.u32 %r3, %r3, %r1;\n"
    "setp.eq.u32 %leader, %thread, 0;\n";

std::vector<U32> run_bulk(const std::string& body) {
  GlobalMemory memory;
  const DeviceArray<U32> in(memory, numbered(32)), out(memory, std::vector<U32>(32, 100));
  TestKernel(kBulkBegin + body, 2).run(memory, {in.address(), out.address()}, {}, {32});
  return out.values();
}

std::string bulk_fault(const std::string& body) {
  return fault_of([&] { run_bulk(body); });
}

const std::string kBulkLoad =
    "@%leader mbarrier.init.shared::cta.b64 [%r2], 1; @%leader fence.mbarrier_init.release.cluster; bar.sync 0;\n"
    "@!%leader bra $wait; mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;\n"
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%p0], 128, [%r2];\n$wait:\n";
const std::string kBulkWait = "mbarrier.try_wait.parity.shared::cta.b64 %q1, [%r2], 0; @!%q1 bra $wait;\n";
const std::string kBulkOut =
    "ld.shared.u32 %r4, [%r3]; sub.u64 %rd1, %address, %p0; add.u64 %rd1, %rd1, %p1;\n"
    "st.global.u32 [%rd1], %r4;\n";

TEST(BulkLoad, ArrivesForThoseWhoWait) { EXPECT_EQ(run_bulk(kBulkLoad + kBulkWait + kBulkOut), numbered(32)); }

TEST(BulkLoad, IsNotThereForThoseWhoDoNot) {
  EXPECT_NE(bulk_fault(kBulkLoad + kBulkOut).find("shared memory is read before it is written"), std::string::npos);
}

TEST(BulkLoad, WantsMultiplesOf16Bytes) {
  std::string text = kBulkLoad;
  text.replace(text.find("128, [%r2]"), 3, "120");
  EXPECT_NE(bulk_fault(text + kBulkWait + kBulkOut).find("multiple of 16"), std::string::npos);
}

const std::string kBulkFill = "add.u32 %r4, %thread, 7; st.shared.u32 [%r3], %r4;\n";
const std::string kBulkPublish = "fence.proxy.async.shared::cta; bar.sync 0; @!%leader bra $end;\n";
const std::string kBulkStore =
    "cp.async.bulk.global.shared::cta.bulk_group [%p1], [%r1], 128; cp.async.bulk.commit_group;\n";

TEST(BulkStore, WritesWhatWasThere) {
  std::vector<U32> expected = numbered(32);
  for (U32& word : expected) word += 7;
  EXPECT_EQ(run_bulk(kBulkFill + kBulkPublish + kBulkStore + "cp.async.bulk.wait_group 0; $end:"), expected);
  EXPECT_EQ(run_bulk(kBulkFill + kBulkPublish + kBulkStore + "cp.async.bulk.wait_group.read 0; $end:"), expected);
}

TEST(BulkStore, MissingFencesAndWaitsAreFound) {
  EXPECT_NE(
      bulk_fault(kBulkFill + "bar.sync 0; @!%leader bra $end;\n" + kBulkStore + "cp.async.bulk.wait_group 0; $end:")
          .find("without fence.proxy.async"),
      std::string::npos);
  EXPECT_NE(bulk_fault(kBulkFill + kBulkPublish + kBulkStore + "$end:").find("the block ends while a bulk copy reads"),
            std::string::npos);
  // The source is overwritten while it is read.
  EXPECT_NE(bulk_fault(kBulkFill + kBulkPublish + kBulkStore +
                       "st.shared.u32 [%r1], %r4; cp.async.bulk.wait_group.read 0; $end:")
                .find("race in shared memory"),
            std::string::npos);
  run_bulk(kBulkFill + kBulkPublish + kBulkStore + "cp.async.bulk.wait_group.read 0; st.shared.u32 [%r1], %r4; $end:");
}

TEST(BulkReduce, AddsToGlobalMemory) {
  std::vector<U32> expected = numbered(32);
  for (U32& word : expected) word += 107;
  EXPECT_EQ(run_bulk(kBulkFill + kBulkPublish +
                     "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%p1], [%r1], 128;\n"
                     "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; $end:"),
            expected);
}

// Each thread copies its word, and arrives when that has landed.
TEST(CopyArrival, CompletesThePhaseOfAnMbarrier) {
  const std::string begin =
      "@%leader mbarrier.init.shared::cta.b64 [%r2], 32; bar.sync 0;\n"
      "cp.async.ca.shared.global [%r3], [%address], 4;\n";
  const std::string neighbour = "$wait:" + kBulkWait +
                                "xor.b32 %r5, %r3, 4; ld.shared.u32 %r4, [%r5];\n"
                                "sub.u64 %rd1, %address, %p0; add.u64 %rd1, %rd1, %p1; st.global.u32 [%rd1], %r4;\n";
  std::vector<U32> expected = numbered(32);
  for (U32& word : expected) word ^= 1;
  EXPECT_EQ(run_bulk(begin + "cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n" + neighbour), expected);
  EXPECT_EQ(run_bulk(begin + "cp.async.mbarrier.arrive.shared.b64 [%r2]; mbarrier.arrive.shared.b64 %rd2, [%r2];\n" +
                     neighbour),
            expected);
}

TEST(Mbarrier, TransactionsOfThreadsAndDroppedArrivals) {
  const std::string text =
      "@!%leader bra $end; mbarrier.init.shared::cta.b64 [%r2], 2; mbarrier.expect_tx.relaxed.cta.shared::cta.b64 "
      "[%r2], "
      "16;\nmbarrier.arrive.shared::cta.b64 %rd2, [%r2]; mbarrier.pending_count.b64 %r4, %rd2;\n"
      "mbarrier.arrive_drop.shared::cta.b64 %rd2, [%r2];\n"
      "mbarrier.test_wait.parity.shared::cta.b64 %q1, [%r2], 0; selp.u32 %r5, 10, 0, %q1;\n"
      "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r2], 16;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 %q1, [%r2], 0; selp.u32 %r6, 20, 0, %q1;\n"
      "mbarrier.arrive.shared::cta.b64 %rd2, [%r2]; mbarrier.test_wait.parity.shared::cta.b64 %q1, [%r2], 1;\n"
      "selp.u32 %r7, 40, 0, %q1; add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6; add.u32 %r4, %r4, %r7;\n"
      "st.global.u32 [%p1], %r4; $end:";
  EXPECT_EQ(run_bulk(text)[0], 2u + 0u + 20u + 40u);
}

}  // namespace
}  // namespace gradring::simulated_gpu
