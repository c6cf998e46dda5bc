// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/records/metrics/run_history.h"

namespace gradring::train {

/// Faults of one kind and rank in consecutive steps, which are shown as one.
struct FaultGroup {
  std::string kind{};
  int rank = 0;
  double time = 0;  ///< of the first
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;

  /// "kill, rank 1", "10 x delay, rank 1"
  std::string label() const;
  /// The same with the steps.
  std::string label_with_steps() const;
};

/// In the order of steps.
std::vector<FaultGroup> fault_groups_of(const RunHistory& history);

}  // namespace gradring::train
