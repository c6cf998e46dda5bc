// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "train/report/run_events.h"

namespace gradring::train {

/// The number of the format that docs/metrics.md describes.
inline constexpr int kMetricsSchema = 1;

/// A line of metrics.jsonl, without the line break. NaN and infinity become null.
std::string to_line(const TimedEvent& event);

/// The inverse. Ignores unknown members, takes absent ones as their defaults, and null as NaN. Reads "step" and "eval"
/// of runs before schema 1 as well, whose epochs counted from 0; they have no time.
///
/// Returns   nothing if the line is not complete, or not an event.
std::optional<TimedEvent> from_line(std::string_view line);

/// A line as schema 1 has it: of runs before it, `step` becomes `train`, epochs count from 1, and the time is 0.
nlohmann::ordered_json in_schema_1(nlohmann::ordered_json line);

}  // namespace gradring::train
