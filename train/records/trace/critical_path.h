// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "train/records/trace/step_timeline.h"

namespace gradring::train {

/// The chain of work that determined how long a step took, as nanoseconds of each category: walked back from the last
/// end. Where a rank waits, the chain goes on at the rank that came last to the collective; the time from there to its
/// end is "communication".
std::map<std::string, std::int64_t> critical_path(const StepTimeline& step);

/// The rank that the others waited for in a step.
struct StepStraggler {
  int rank = -1;           ///< -1: there is none, as of one rank
  std::int64_t delay = 0;  ///< ns by which it came to the collectives later than the median of the others, in total
  std::string cause;       ///< category in which it spent most more time than the median of the others
  std::int64_t cause_delay = 0;  ///< how much more, in ns
};

StepStraggler straggler_of(const StepTimeline& step);

}  // namespace gradring::train
