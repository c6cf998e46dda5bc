// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/faults/fault.h"

namespace gradring::train {

/// A fault of this attempt, with what is drawn drawn.
struct PlannedFault {
  FaultKind kind = FaultKind::kill;
  int rank = 0;
  std::int64_t step = 1;
  std::chrono::milliseconds delay{0};
  int code = 1;
  std::string drawn_by{};  ///< " (seed 7)", where something was
};

/// The world that faults are planned for.
struct FaultedWorld {
  int world_size = 1;
  int attempt = 0;        ///< TORCHELASTIC_RESTART_COUNT
  bool recorded = false;  ///< steps are launched as recordings, and are all alike
};

/// What will go wrong in this attempt: the same on every rank, for draws depend on seed, place in the list and attempt alone.
///
/// Errors    UsageError: a rank outside the world; a NaN where steps are recorded.
std::vector<PlannedFault> plan_faults(std::span<const Fault> faults, const FaultedWorld& world);

/// "kill, rank 1 in step 20"
std::string to_string(const PlannedFault& fault);

}  // namespace gradring::train
