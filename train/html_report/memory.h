// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/report/run_history.h"

namespace gradring::train {

/// Planned and measured memory by class, as an HTML table with bars.
std::string memory_table(const RunHistory& history);

}  // namespace gradring::train
