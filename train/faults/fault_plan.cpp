// SPDX-License-Identifier: Apache-2.0
#include "train/faults/fault_plan.h"

#include <fmt/format.h>

#include <random>

#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

/// Of a few among as many as an int64 holds: that some come a little oftener does not matter here.
std::int64_t draw(std::mt19937_64& random, std::int64_t count) {
  return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(count));
}

std::mt19937_64 generator_of(const Fault& fault, std::size_t place, int attempt) {
  std::seed_seq seed{static_cast<std::uint32_t>(fault.seed), static_cast<std::uint32_t>(fault.seed >> 32),
                     static_cast<std::uint32_t>(place), static_cast<std::uint32_t>(attempt)};
  return std::mt19937_64(seed);
}

void check_fault(const Fault& fault, const FaultedWorld& world) {
  // The world of a later attempt may be another.
  if (world.attempt == 0 && fault.rank.value_or(0) >= world.world_size)
    throw UsageError(
        fmt::format("--inject names rank {}, but the ranks go from 0 to {}", *fault.rank, world.world_size - 1));
  if (fault.kind == FaultKind::nan && world.recorded)
    throw UsageError(
        "--inject nan changes one step, but on a GPU steps are recorded once and launched as they are: add "
        "--cuda-graph off");
}

}  // namespace

std::vector<PlannedFault> plan_faults(std::span<const Fault> faults, const FaultedWorld& world) {
  std::vector<PlannedFault> plan;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Fault& fault = faults[i];
    check_fault(fault, world);
    if (fault.attempt.value_or(world.attempt) != world.attempt) continue;
    std::mt19937_64 random = generator_of(fault, i, world.attempt);
    const std::int64_t step = fault.first_step + draw(random, fault.last_step - fault.first_step + 1);
    const int rank = fault.rank ? *fault.rank : static_cast<int>(draw(random, world.world_size));
    plan.push_back({.kind = fault.kind,
                    .rank = rank,
                    .step = step,
                    .delay = fault.delay,
                    .code = fault.code,
                    .drawn_by = fault.draws() ? fmt::format(" (seed {})", fault.seed) : ""});
  }
  return plan;
}

std::string to_string(const PlannedFault& fault) {
  std::string what(name_of(fault.kind));
  if (fault.kind == FaultKind::delay) what += fmt::format(" of {} ms", fault.delay.count());
  if (fault.kind == FaultKind::exit) what += fmt::format(" with code {}", fault.code);
  return fmt::format("{}, rank {} in step {}{}", what, fault.rank, fault.step, fault.drawn_by);
}

}  // namespace gradring::train
