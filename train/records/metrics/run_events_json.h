// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// The number of the format that docs/metrics.md describes.
inline constexpr int kMetricsSchema = 1;

/// A line of metrics.jsonl, without the line break. NaN and infinity become null.
std::string to_line(const TimedEvent& event);

/// The inverse. Ignores unknown members, takes absent ones as their defaults, and null as NaN.
///
/// Returns   nothing if the line is not complete, not an event, or has a member that cannot be: `problem` says which,
///           "time is 1e+300, expected ...". It is empty for a JSON object that is no event of this version.
std::optional<TimedEvent> from_line(std::string_view line, std::string& problem);
std::optional<TimedEvent> from_line(std::string_view line);

/// Whether a line may have a member of this name.
bool is_event_member(std::string_view name);

/// The JSON object of a line. Its members are not checked, but their number and their levels are.
///
/// Returns   nothing if there is none, as from_line.
std::optional<nlohmann::ordered_json> event_in(std::string_view line, std::string& problem);

}  // namespace gradring::train
