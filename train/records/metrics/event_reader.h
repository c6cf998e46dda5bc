// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/records/metrics/run_events.h"

namespace gradring::train {

// What an event may hold: a file of another program, or a damaged one, makes no reader compute with other numbers.

/// Steps, samples, bytes: what a double holds exactly.
inline constexpr std::int64_t kMostCount = std::int64_t{1} << 53;
inline constexpr int kMostRanks = 1 << 17;
inline constexpr double kMostSeconds = 1e10;       ///< of a duration
inline constexpr double kMostTime = 253402300799;  ///< 9999-12-31T23:59:59Z

/// Reads the members of an event that there are. The first that is of another type or out of its bounds is named in
/// `problem`: "ranks is 2000000000, expected a whole number of at most 131072".
class EventReader {
 public:
  using Json = nlohmann::ordered_json;

  EventReader(const Json& event, std::string& problem) : json_(event), problem_(problem) {}

  void operator()(const char* name, std::string& text) const;
  void operator()(const char* name, bool& value) const;
  void operator()(const char* name, int& value) const;
  void operator()(const char* name, std::int64_t& value) const;
  void operator()(const char* name, std::optional<std::int64_t>& value) const;
  void operator()(const char* name, double& value) const;
  void operator()(const char* name, std::optional<double>& value) const;
  void operator()(const char* name, std::chrono::duration<double>& value) const;
  /// A value of each rank.
  void operator()(const char* name, std::vector<double>& values) const;
  void operator()(const char* name, std::vector<std::string>& texts) const;
  void operator()(const char* name, Outcome& outcome) const;
  void operator()(const char* name, MemoryTable& table) const;
  void operator()(const char* name, std::vector<GroupRecord>& groups) const;
  void operator()(const char* name, std::vector<std::pair<std::string, std::string>>& options) const;

 private:
  using IsType = bool (Json::*)() const noexcept;

  void fail(std::string_view name, const std::string& found, const std::string& expected) const;
  const Json* member(const char* name, IsType is_type, const char* expected) const;
  template <class Value>
  void count(const char* name, Value& value, std::int64_t most) const;
  template <class Value>
  void number(const char* name, Value& value) const;
  double to_number(std::string_view name, const Json& value) const;

  const Json& json_;
  std::string& problem_;
};

/// The names and members of a group, for readers and writers.
void visit_group(auto& group, auto visit) {
  visit("patterns", group.patterns);
  visit("tensors", group.tensors);
  visit("parameters", group.parameters);
  visit("optimizer", group.optimizer);
  visit("lr", group.learning_rate);
  visit("weight_decay", group.weight_decay);
  visit("epochs", group.epochs);
  visit("frozen", group.frozen);
}

/// Parses JSON of unknown origin. A parser needs stack for each level when what it has read is copied, time for each pair
/// of members of an object, and memory for each value: texts with more than 64 levels, 1,024 members of one object or
/// about a million values are not parsed.
///
/// Returns   nothing if `text` is not JSON or exceeds this, and why in `problem`.
/// Cost      memory about 16 times that of `text` at most, and at most 64 MiB.
std::optional<nlohmann::ordered_json> parse_bounded(std::string_view text, std::string& problem);

/// A value as a message shows it: numbers and short texts themselves.
std::string shown_value(const nlohmann::ordered_json& value);

}  // namespace gradring::train
