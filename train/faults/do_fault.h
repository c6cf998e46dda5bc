// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/faults/fault_plan.h"

namespace gradring::train {

/// Does to this process what the fault says, at once; returns behind a delay, and when a stopped process is continued.
/// A NaN is not done here, but by NanBackend.
void do_fault(const PlannedFault& fault);

}  // namespace gradring::train
