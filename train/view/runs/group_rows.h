// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// The heads of a table of parameter groups: texts, then numbers.
inline const std::vector<std::string> kGroupTexts = {"group", "optimizer"},
                                      kGroupNumbers = {"tensors", "parameters", "lr", "weight decay"};

/// A row of texts for each group, in the order of the heads. A frozen group has no optimizer, rate and decay.
std::vector<std::vector<std::string>> group_rows(std::span<const GroupRecord> groups);

}  // namespace gradring::train
