// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/report/run_history.h"

namespace gradring::train {

/// The run on the axis of wall time: when it trained, evaluated and saved, its faults and restarts. HTML.
std::string timeline_of(const RunHistory& history);

}  // namespace gradring::train
