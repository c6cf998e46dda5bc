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
    throw Fault(
        joined("mbarrier is initialised with a count of ", count, ", which is not within 1 and ", kMostArrivals));
  }
}

std::uint64_t Mbarrier::arrive(std::uint32_t count) {
  if (count < 1 || count > pending_) {
    throw Fault(joined("mbarrier gets ", count, " arrivals, which is not within 1 and those pending: ", describe()));
  }
  const std::uint64_t before = phase_ << kPhaseShift | pending_;
  pending_ -= count;
  complete_if_due();
  return before;
}

std::uint64_t Mbarrier::arrive_and_drop(std::uint32_t count) {
  if (count > expected_)
    throw Fault(joined("mbarrier is left by ", count, " threads, more than it expects: ", describe()));
  expected_ -= count;
  return arrive(count);
}

bool Mbarrier::is_complete_since(std::uint64_t state) const {
  const std::uint64_t phase = state >> kPhaseShift;
  if (phase != phase_ && phase + 1 != phase_) {
    throw Fault(joined("mbarrier is asked about phase ", phase,
                       ", which is neither the current one nor the one before: ", describe()));
  }
  return phase != phase_;
}

std::string Mbarrier::describe() const {
  return joined("phase ", phase_, ", ", pending_, " of ", expected_, " arrivals and ", transactions_, " bytes pending");
}

void Mbarrier::add_transactions(std::int64_t bytes) {
  const std::int64_t sum = transactions_ + bytes;
  if (std::abs(sum) > kMostBytes) {
    throw Fault(joined("mbarrier's tx-count becomes ", sum, ", which is not within -", kMostBytes, " and ", kMostBytes,
                       ": ", describe()));
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
    throw Fault(joined("mbarrier at address ", address, " of shared memory is not aligned to 8 bytes"));
  }
  if (overlaps(address, kBytes)) {
    throw Fault(joined("mbarrier at address ", address,
                       " of shared memory is initialised again: end the old one with mbarrier.inval before"));
  }
  objects_.emplace(address, Mbarrier(count));
}

Mbarrier& Mbarriers::at(std::uint32_t address) {
  const auto found = objects_.find(address);
  if (found == objects_.end()) {
    throw Fault(joined("there is no initialised mbarrier at address ", address, " of shared memory"));
  }
  return found->second;
}

}  // namespace gradring::simulated_gpu
