// SPDX-License-Identifier: Apache-2.0
#include "train/faults/faulty_requests.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace gradring::train {

void FaultyRequests::at(const RunPlace& place) {
  inner_.at(place);
  now_.clear();
  if (std::string_view(place.doing) != kTraining) return;
  const auto is_now = [&](const PlannedFault& fault) { return fault.step == place.begun + 1; };
  std::ranges::copy_if(faults_, std::back_inserter(now_), is_now);
  std::erase_if(faults_, is_now);
  for (const PlannedFault& fault : now_) do_fault_(fault);
}

bool FaultyRequests::in_step_of(FaultKind kind) const {
  return std::ranges::find(now_, kind, &PlannedFault::kind) != now_.end();
}

}  // namespace gradring::train
