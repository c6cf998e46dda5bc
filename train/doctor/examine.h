// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/doctor/finding.h"
#include "train/launch/worker_environment.h"

namespace gradring::train::doctor {

/// Looks at this program and this machine: what was built in, what was found, what a training would use. Starts every Python
/// on PATH until one imports torch, which takes seconds; changes nothing.
std::vector<Section> examine(const VariableLookup& environment);

}  // namespace gradring::train::doctor
