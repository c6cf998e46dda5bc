// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/report/run_history.h"

namespace gradring::train {

/// Where rank 0's step time goes, as a bar of means and areas over the run: data, forward, backward, exposed
/// communication, optimizer, the rest. Parts that the events lack are in the rest.
std::string step_split(const RunHistory& history);

}  // namespace gradring::train
