// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/fault_groups.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradring::train {

std::string FaultGroup::label() const {
  const std::int64_t count = last_step - first_step + 1;
  return count == 1 ? fmt::format("{}, rank {}", kind, rank) : fmt::format("{} × {}, rank {}", count, kind, rank);
}

std::string FaultGroup::label_with_steps() const {
  if (first_step == last_step) return fmt::format("{}, step {}", label(), first_step);
  return fmt::format("{}, steps {} to {}", label(), first_step, last_step);
}

std::vector<FaultGroup> fault_groups_of(const RunHistory& history) {
  std::vector<FaultGroup> groups;
  for (const auto& [time, fault] : history.faults) {
    if (!groups.empty() && groups.back().kind == fault.kind && groups.back().rank == fault.rank &&
        groups.back().last_step + 1 == fault.step)
      groups.back().last_step = fault.step;
    else
      groups.push_back(
          {.kind = fault.kind, .rank = fault.rank, .time = time, .first_step = fault.step, .last_step = fault.step});
  }
  std::ranges::stable_sort(groups, {}, &FaultGroup::first_step);
  return groups;
}

}  // namespace gradring::train
