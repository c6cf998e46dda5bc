// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "train/doctor/finding.h"

namespace gradring::train::doctor {

/// What this program was built with.
std::vector<Finding> built_in();

}  // namespace gradring::train::doctor
