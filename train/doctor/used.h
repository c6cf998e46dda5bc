// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/doctor/finding.h"
#include "train/launch/worker_environment.h"

namespace gradring::train::doctor {

/// What a training takes here if nobody asks for anything else.
std::vector<Finding> used_here(const VariableLookup& environment);

}  // namespace gradring::train::doctor
