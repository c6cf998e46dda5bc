// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// As from_line, but of a training step reads only time, step, epoch, loss, samples and seconds, many times faster: for
/// lists of runs that have many steps.
std::optional<TimedEvent> skim_line(std::string_view line, std::string& problem);

}  // namespace gradring::train
