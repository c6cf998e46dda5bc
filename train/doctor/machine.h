// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/doctor/finding.h"
#include "train/launch/worker_environment.h"

namespace gradring::train::doctor {

/// What this machine has: processor, memory, ways for processes to meet, a GPU's driver, a Python to compare with.
std::vector<Finding> found_here(const VariableLookup& environment);

}  // namespace gradring::train::doctor
