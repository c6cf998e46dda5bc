// SPDX-License-Identifier: Apache-2.0
#include "train/faults/faulty_requests.h"

#include <algorithm>
#include <string_view>

namespace gradring::train {

void FaultyRequests::at(const RunPlace& place) {
  inner_.at(place);
  step_ = std::string_view(place.doing) == kTraining ? place.begun + 1 : 0;
  for (const PlannedFault& fault : faults_)
    if (fault.step == step_) do_fault_(fault);
}

bool FaultyRequests::in_step_of(FaultKind kind) const {
  return std::ranges::any_of(faults_,
                             [&](const PlannedFault& fault) { return fault.kind == kind && fault.step == step_; });
}

}  // namespace gradring::train
