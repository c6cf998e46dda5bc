// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/report/run_history.h"

namespace gradring::train {

/// The table of ranks as HTML, with the straggler (train/runs/rank_means.h) marked and the rule stated.
std::string ranks_table(const RunHistory& history);

}  // namespace gradring::train
