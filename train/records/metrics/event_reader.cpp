// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/event_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/records/metrics/run_events_json.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostLevels = 64;
constexpr int kMostMembers = 1024;  // of an object
constexpr int kMostValues = 1 << 20;

/// Which bound `text` exceeds; empty if none. Counts what is outside of strings, in any text.
std::string excess_of(std::string_view text) {
  std::array<int, kMostLevels + 1> members{};  // of the open object of each level
  std::size_t level = 0;
  int values = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '\\') ++i;
    if (c == '"') is_quoted = !is_quoted;
    if (is_quoted) continue;
    if (c == '[' || c == '{') {
      if (++level > kMostLevels) return fmt::format("it has more than {} levels", kMostLevels);
      members[level] = 0;
    }
    if ((c == ']' || c == '}') && level > 0) --level;
    if (c == ':' && ++members[level] > kMostMembers)
      return fmt::format("an object has more than {} members", kMostMembers);
    if (c == ',' && ++values > kMostValues) return fmt::format("it has more than {} values", kMostValues);
  }
  return {};
}

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
                             {"top5_accuracy", 0, 1},
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

template <class Value>
void EventReader::count(const char* name, Value& value, std::int64_t most) const {
  const auto found = json_.find(name);
  if (found == json_.end()) return;
  if (found->is_number_unsigned() && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(most))
    value = Value(found->get<std::int64_t>());
  else
    fail(name, shown_value(*found), fmt::format("a whole number from 0 to {}", most));
}

template <class Value>
void EventReader::number(const char* name, Value& value) const {
  if (const auto found = json_.find(name); found != json_.end()) value = Value(to_number(name, *found));
}

/// Null is NaN.
double EventReader::to_number(std::string_view name, const Json& value) const {
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
  count(name, value, std::string_view(name) == "ranks" ? kMostRanks : std::numeric_limits<int>::max());
}
void EventReader::operator()(const char* name, std::int64_t& value) const { count(name, value, kMostCount); }
void EventReader::operator()(const char* name, std::optional<std::int64_t>& value) const {
  count(name, value, kMostCount);
}
void EventReader::operator()(const char* name, double& value) const { number(name, value); }
void EventReader::operator()(const char* name, std::optional<double>& value) const { number(name, value); }
void EventReader::operator()(const char* name, std::chrono::duration<double>& value) const { number(name, value); }

void EventReader::operator()(const char* name, std::vector<double>& values) const {
  const Json* const found = member(name, &Json::is_array, "a list");
  if (!found) return;
  if (found->size() > std::size_t{kMostRanks})
    return fail(name, fmt::format("a list of {}", found->size()), fmt::format("at most {} values", kMostRanks));
  values.reserve(found->size());
  for (const Json& each : *found) values.push_back(to_number(name, each));
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

void EventReader::operator()(const char* name, std::vector<GroupRecord>& groups) const {
  const Json* const found = member(name, &Json::is_array, "a list");
  if (!found) return;
  for (const Json& each : *found) {
    if (!each.is_object()) return fail(name, "a list of other values", "a list of objects");
    visit_group(groups.emplace_back(), EventReader(each, problem_));
  }
}

void EventReader::operator()(const char* name, std::vector<std::pair<std::string, std::string>>& options) const {
  const Json* const found = member(name, &Json::is_object, "an object");
  if (!found) return;
  for (const auto& [option, value] : found->items())
    options.emplace_back(option, value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::optional<Json> parse_bounded(std::string_view text, std::string& problem) {
  problem = excess_of(text);
  if (!problem.empty()) return std::nullopt;
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return json;
  problem = "it is not JSON";
  return std::nullopt;
}

std::string shown_value(const Json& value) {
  constexpr std::size_t kMostShown = 40;
  if (value.is_structured()) return value.is_array() ? "a list" : "an object";
  const std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  return text.size() <= kMostShown ? text : fmt::format("a text of {} bytes", text.size());
}

}  // namespace gradring::train
