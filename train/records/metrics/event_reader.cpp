// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "train/records/metrics/bounded_json.h"

namespace gradring::train {
namespace {

/// What a number may be, inclusive; others may be any.
struct Bound {
  std::string_view name;
  double least, most;
};
constexpr Bound kBounds[] = {{"seconds", -kMostSeconds, kMostSeconds},
                             {"data_wait", -kMostSeconds, kMostSeconds},
                             {"exposed_communication", -kMostSeconds, kMostSeconds},
                             {"forward", -kMostSeconds, kMostSeconds},
                             {"backward", -kMostSeconds, kMostSeconds},
                             {"optimizer", -kMostSeconds, kMostSeconds},
                             {"accuracy", 0, 1},
                             {"ema_accuracy", 0, 1},
                             {"underflow", 0, 1},
                             {"memory", 0, kMostCount}};

}  // namespace

void EventReader::fail(std::string_view name, const std::string& found, const std::string& expected) const {
  if (problem_.empty()) problem_ = fmt::format("{} is {}, expected {}", name, found, expected);
}

/// Null if it is absent, or of another type, which fails.
const EventReader::Json* EventReader::member(const char* name, IsType is_type, const char* expected) const {
  const auto found = json_.find(name);
  if (found == json_.end()) return nullptr;
  if (((*found).*is_type)()) return &*found;
  fail(name, shown_value(*found), expected);
  return nullptr;
}

std::optional<std::int64_t> EventReader::count(const char* name, std::int64_t most) const {
  const auto found = json_.find(name);
  if (found == json_.end()) return std::nullopt;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most))
    return found->get<std::int64_t>();
  fail(name, shown_value(*found), fmt::format("a whole number from 0 to {}", most));
  return std::nullopt;
}

/// Null is NaN.
double EventReader::number(std::string_view name, const Json& value) const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (value.is_null()) return kNan;
  const auto* const bound = std::ranges::find(kBounds, name, &Bound::name);
  const bool is_bounded = bound != std::end(kBounds);
  const double number = value.is_number() ? value.get<double>() : kNan;
  if (is_bounded ? number >= bound->least && number <= bound->most : value.is_number()) return number;
  fail(name, shown_value(value),
       is_bounded ? fmt::format("a number from {:g} to {:g}", bound->least, bound->most) : "a number");
  return kNan;
}

void EventReader::operator()(const char* name, std::string& text) const {
  if (const Json* found = member(name, &Json::is_string, "a text")) found->get_to(text);
}

void EventReader::operator()(const char* name, bool& value) const {
  if (const Json* found = member(name, &Json::is_boolean, "true or false")) found->get_to(value);
}

void EventReader::operator()(const char* name, int& value) const {
  if (const auto found = count(name, std::numeric_limits<int>::max())) value = static_cast<int>(*found);
}

void EventReader::operator()(const char* name, std::int64_t& value) const {
  if (const auto found = count(name, kMostCount)) value = *found;
}

void EventReader::operator()(const char* name, std::optional<std::int64_t>& value) const {
  if (const auto found = count(name, kMostCount)) value = found;
}

void EventReader::ranks(const char* name, int& value) const {
  if (const auto found = count(name, kMostRanks)) value = static_cast<int>(*found);
}

void EventReader::operator()(const char* name, double& value) const {
  if (const auto found = json_.find(name); found != json_.end()) value = number(name, *found);
}

void EventReader::operator()(const char* name, std::optional<double>& value) const {
  if (const auto found = json_.find(name); found != json_.end()) value = number(name, *found);
}

void EventReader::operator()(const char* name, std::chrono::duration<double>& value) const {
  if (const auto found = json_.find(name); found != json_.end())
    value = std::chrono::duration<double>(number(name, *found));
}

void EventReader::operator()(const char* name, std::vector<double>& values) const {
  const Json* const found = member(name, &Json::is_array, "a list");
  if (!found) return;
  if (found->size() > std::size_t{kMostRanks})
    return fail(name, fmt::format("a list of {}", found->size()), fmt::format("at most {} values", kMostRanks));
  values.reserve(found->size());
  for (const Json& each : *found) values.push_back(number(name, each));
}

void EventReader::operator()(const char* name, std::vector<std::string>& texts) const {
  const Json* const found = member(name, &Json::is_array, "a list of texts");
  if (!found) return;
  if (!std::ranges::all_of(*found, [](const Json& each) { return each.is_string(); }))
    return fail(name, "a list of other values", "a list of texts");
  found->get_to(texts);
}

void EventReader::operator()(const char* name, Outcome& outcome) const {
  std::string text;
  (*this)(name, text);
  if (const auto named = outcome_named(text)) outcome = *named;
}

void EventReader::operator()(const char* name, MemoryTable& table) const {
  const Json* const found = member(name, &Json::is_object, "an object");
  if (!found) return;
  const EventReader classes(*found, problem_);
  for (const MemoryClass each : all_memory_classes()) {
    std::int64_t bytes = 0;
    classes(std::string(name_of(each)).c_str(), bytes);
    table[each] = static_cast<std::size_t>(bytes);
  }
}

void EventReader::operator()(const char* name, std::vector<std::pair<std::string, std::string>>& options) const {
  const Json* const found = member(name, &Json::is_object, "an object");
  if (!found) return;
  for (const auto& [option, value] : found->items())
    options.emplace_back(option, value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

}  // namespace gradring::train
