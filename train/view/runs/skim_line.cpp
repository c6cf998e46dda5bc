// SPDX-License-Identifier: Apache-2.0
#include "train/view/runs/skim_line.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "train/records/metrics/event_reader.h"
#include "train/records/metrics/run_events_json.h"

namespace gradring::train {
namespace {

/// How to_line begins the line of a training step.
constexpr std::string_view kTrain = R"({"event":"train","time":)";

/// Reads a number; null is NaN. Within a JSON string a quote follows a backslash, so no string can hold `"loss":`, and
/// a training step has no nested objects.
template <class Number>
bool read(std::string_view line, std::string_view member, Number& number) {
  const std::size_t at = line.find(member);
  if (at == line.npos) return false;
  const std::string_view text = line.substr(at + member.size());
  if constexpr (std::numeric_limits<Number>::has_quiet_NaN)
    if (text.starts_with("null")) {
      number = std::numeric_limits<Number>::quiet_NaN();
      return true;
    }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(number)) return false;  // "inf" is not JSON
  return error == std::errc() && end != text.data() + text.size() && (*end == ',' || *end == '}');
}

}  // namespace

std::optional<TimedEvent> skim_line(std::string_view line, std::string& problem) {
  if (!line.starts_with(kTrain) || !line.ends_with('}')) return from_line(line, problem);
  double time = 0, seconds = 0;
  StepRecord step;
  const bool is_complete = read(line, R"("time":)", time) && read(line, R"("step":)", step.step) &&
                           read(line, R"("epoch":)", step.epoch) && read(line, R"("loss":)", step.loss) &&
                           read(line, R"("samples":)", step.samples) && read(line, R"("seconds":)", seconds);
  const bool is_within = time >= 0 && time <= kMostTime && std::abs(seconds) <= kMostSeconds &&
                         std::ranges::all_of(std::array{step.step, step.epoch, step.samples},
                                             [](std::int64_t count) { return count >= 0 && count <= kMostCount; });
  if (!is_complete || !is_within) return from_line(line, problem);
  step.duration = std::chrono::duration<double>(seconds);
  return TimedEvent{.time = time, .event = step};
}

}  // namespace gradring::train
