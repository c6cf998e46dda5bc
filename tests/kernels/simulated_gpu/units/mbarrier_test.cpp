// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mbarrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SimulatedMbarrier, CompletesPhaseWithLastArrival) {
  Mbarrier barrier(3);
  EXPECT_FALSE(barrier.is_complete(false));
  EXPECT_TRUE(barrier.is_complete(true));  // the phase before the first
  const std::uint64_t first = barrier.arrive();
  EXPECT_EQ(Mbarrier::pending_of(first), 3U);
  const std::uint64_t second = barrier.arrive(2);
  EXPECT_EQ(Mbarrier::pending_of(second), 2U);
  EXPECT_EQ(barrier.phase(), 1U);
  EXPECT_EQ(barrier.pending(), 3U);
  EXPECT_TRUE(barrier.is_complete(false));
  EXPECT_FALSE(barrier.is_complete(true));
  EXPECT_TRUE(barrier.is_complete_since(first));
  EXPECT_FALSE(barrier.is_complete_since(barrier.arrive()));
  EXPECT_TRUE(barrier.is_complete_since(first));  // the phase before the current one
}

TEST(SimulatedMbarrier, RejectsStateOfOlderPhase) {
  Mbarrier barrier(1);
  const std::uint64_t first = barrier.arrive();
  barrier.arrive();
  EXPECT_THAT([&] { barrier.is_complete_since(first); }, ThrowsMessage<Fault>(HasSubstr("asked about phase 0")));
}

TEST(SimulatedMbarrier, WaitsForTransactions) {
  Mbarrier barrier(1);
  barrier.expect_tx(4096);
  barrier.arrive();
  EXPECT_FALSE(barrier.is_complete(false));
  EXPECT_EQ(barrier.describe(), "phase 0, 0 of 1 arrivals and 4096 bytes pending");
  barrier.complete_tx(4000);
  EXPECT_FALSE(barrier.is_complete(false));
  barrier.complete_tx(96);
  EXPECT_TRUE(barrier.is_complete(false));
  EXPECT_EQ(barrier.pending(), 1U);
}

TEST(SimulatedMbarrier, TransactionsMayCompleteBeforeTheyAreExpected) {
  Mbarrier barrier(1);
  barrier.complete_tx(128);
  EXPECT_EQ(barrier.transaction_bytes(), -128);
  barrier.expect_tx(128);
  EXPECT_FALSE(barrier.is_complete(false));  // no arrival yet
  barrier.arrive();
  EXPECT_TRUE(barrier.is_complete(false));
}

// Planted: half of the bytes expected. The phase cannot complete, and the description tells why.
TEST(SimulatedMbarrier, DoesNotCompleteWithTooManyBytes) {
  Mbarrier barrier(1);
  barrier.expect_tx(2048);
  barrier.arrive();
  barrier.complete_tx(4096);
  EXPECT_FALSE(barrier.is_complete(false));
  EXPECT_EQ(barrier.describe(), "phase 0, 0 of 1 arrivals and -2048 bytes pending");
}

TEST(SimulatedMbarrier, RejectsTooManyArrivals) {
  Mbarrier barrier(2);
  EXPECT_THAT([&] { barrier.arrive(3); }, ThrowsMessage<Fault>(HasSubstr("gets 3 arrivals")));
  EXPECT_THROW(barrier.arrive(0), Fault);
  barrier.expect_tx(16);
  barrier.arrive(2);
  EXPECT_THROW(barrier.arrive(), Fault);  // the phase is not complete, and nobody else is expected
}

// PTX ISA 9.0, 9.7.13.15.2: the ranges of the counts.
TEST(SimulatedMbarrier, KeepsRanges) {
  EXPECT_THROW(Mbarrier(0), Fault);
  EXPECT_THROW(Mbarrier(1 << 20), Fault);
  Mbarrier barrier((1 << 20) - 1);
  barrier.expect_tx((1 << 20) - 1);
  EXPECT_THAT([&] { barrier.expect_tx(1); }, ThrowsMessage<Fault>(HasSubstr("tx-count becomes 1048576")));
  EXPECT_EQ(barrier.transaction_bytes(), (1 << 20) - 1);
  Mbarrier other(1);
  other.complete_tx((1 << 20) - 1);
  EXPECT_THROW(other.complete_tx(1), Fault);
}

TEST(SimulatedMbarriers, KeepsObjectsByAddress) {
  Mbarriers barriers;
  EXPECT_TRUE(barriers.empty());
  EXPECT_THAT([&] { barriers.at(64); }, ThrowsMessage<Fault>(HasSubstr("no initialised mbarrier at address 64")));
  barriers.init(64, 1);
  barriers.init(72, 2);
  barriers.at(64).arrive();
  EXPECT_EQ(barriers.at(64).phase(), 1U);
  EXPECT_EQ(barriers.at(72).phase(), 0U);
  EXPECT_THAT([&] { barriers.init(64, 1); }, ThrowsMessage<Fault>(HasSubstr("initialised again")));
  EXPECT_THAT([&] { barriers.init(84, 1); }, ThrowsMessage<Fault>(HasSubstr("not aligned")));
  EXPECT_THROW(barriers.init(80, 0), Fault);
  EXPECT_THROW(barriers.at(80), Fault);
  barriers.invalidate(64);
  EXPECT_THROW(barriers.at(64), Fault);
  EXPECT_THROW(barriers.invalidate(64), Fault);
  barriers.init(64, 4);
  EXPECT_EQ(barriers.at(64).pending(), 4U);
}

TEST(SimulatedMbarriers, KnowsItsBytes) {
  Mbarriers barriers;
  barriers.init(64, 1);
  for (const std::uint32_t address : {57U, 60U, 63U, 64U, 68U, 71U})
    EXPECT_TRUE(barriers.overlaps(address, 8)) << address;
  EXPECT_FALSE(barriers.overlaps(56, 8));
  EXPECT_FALSE(barriers.overlaps(72, 8));
  EXPECT_FALSE(barriers.overlaps(63, 1));
  EXPECT_TRUE(barriers.overlaps(0, 4096));
  EXPECT_FALSE(barriers.overlaps(0, 64));
}

}  // namespace
}  // namespace gradring::simulated_gpu
