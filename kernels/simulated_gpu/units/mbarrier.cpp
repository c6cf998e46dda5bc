// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/mbarrier.h"

#include <cstdlib>

#include "kernels/simulated_gpu/units/fault.h"

namespace gradring::simulated_gpu {
namespace {

constexpr int kPhaseShift = 20;  ///< of a state: pending arrivals below

}  // namespace

Mbarrier::Mbarrier(std::uint32_t count) : expected_(count), pending_(count) {
  if (count < 1 || count > kMostArrivals) {
    throw Fault("mbarrier is initialised with a count of " + std::to_string(count) + ", which is not within 1 and " +
                std::to_string(kMostArrivals));
  }
}

std::uint64_t Mbarrier::arrive(std::uint32_t count) {
  if (count < 1 || count > pending_) {
    throw Fault("mbarrier gets " + std::to_string(count) +
                " arrivals, which is not within 1 and those pending: " + describe());
  }
  const std::uint64_t before = phase_ << kPhaseShift | pending_;
  pending_ -= count;
  complete_if_due();
  return before;
}

std::uint64_t Mbarrier::arrive_drop(std::uint32_t count) {
  // First, since the phase after the one that this completes begins with it. arrive() refuses other counts.
  if (count >= 1 && count <= pending_) expected_ -= count;
  return arrive(count);
}

void Mbarrier::expect_tx(std::uint32_t bytes) { add_transactions(bytes); }

void Mbarrier::complete_tx(std::uint32_t bytes) {
  add_transactions(-static_cast<std::int64_t>(bytes));
  complete_if_due();
}

bool Mbarrier::is_complete_since(std::uint64_t state) const {
  const std::uint64_t phase = state >> kPhaseShift;
  if (phase != phase_ && phase + 1 != phase_) {
    throw Fault("mbarrier is asked about phase " + std::to_string(phase) +
                ", which is neither the current one nor the one before: " + describe());
  }
  return phase != phase_;
}

std::string Mbarrier::describe() const {
  return "phase " + std::to_string(phase_) + ", " + std::to_string(pending_) + " of " + std::to_string(expected_) +
         " arrivals and " + std::to_string(transactions_) + " bytes pending";
}

void Mbarrier::add_transactions(std::int64_t bytes) {
  const std::int64_t sum = transactions_ + bytes;
  if (std::abs(sum) > kMostBytes) {
    throw Fault("mbarrier's tx-count becomes " + std::to_string(sum) + ", which is not within -" +
                std::to_string(kMostBytes) + " and " + std::to_string(kMostBytes) + ": " + describe());
  }
  transactions_ = static_cast<std::int32_t>(sum);
}

void Mbarrier::complete_if_due() {
  if (pending_ != 0 || transactions_ != 0) return;
  ++phase_;
  pending_ = expected_;
}

void Mbarriers::init(std::uint32_t address, std::uint32_t count) {
  if (address % kBytes != 0) {
    throw Fault("mbarrier at address " + std::to_string(address) + " of shared memory is not aligned to 8 bytes");
  }
  if (overlaps(address, kBytes)) {
    throw Fault("mbarrier at address " + std::to_string(address) +
                " of shared memory is initialised again: end the old one with mbarrier.inval before");
  }
  objects_.emplace(address, Mbarrier(count));
}

void Mbarriers::invalidate(std::uint32_t address) {
  at(address);
  objects_.erase(address);
}

Mbarrier& Mbarriers::at(std::uint32_t address) {
  const auto found = objects_.find(address);
  if (found == objects_.end()) {
    throw Fault("there is no initialised mbarrier at address " + std::to_string(address) + " of shared memory");
  }
  return found->second;
}

bool Mbarriers::overlaps(std::uint32_t address, std::size_t bytes) const {
  const auto next = objects_.lower_bound(address < kBytes ? 0 : address - kBytes + 1);
  return next != objects_.end() && next->first < address + bytes;
}

}  // namespace gradring::simulated_gpu
