// SPDX-License-Identifier: Apache-2.0
#include "train/core/config/group_option.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "kernels/base/nearest_name.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

/// One key of a group.
struct Key {
  std::string_view name;
  std::function<void(GroupOverride&, std::string_view option, std::string_view text)> read;
  std::function<std::string(const GroupOverride&)> show;  ///< the value; empty: not given
  bool is_flag = false;                                   ///< "key" is "key=true"
};

template <class Value, class Read, class Show>
Key key(std::string_view name, std::optional<Value> GroupOverride::*field, Read read, Show show) {
  return {.name = name,
          .read = [=](GroupOverride& group, std::string_view option,
                      std::string_view text) { group.*field = read(fmt::format("{} {}", option, name), text); },
          .show = [=](const GroupOverride& group) { return group.*field ? show(*(group.*field)) : std::string(); },
          .is_flag = std::is_same_v<Value, bool>};
}

Key number_key(std::string_view name, std::optional<double> GroupOverride::*field) {
  return key(
      name, field, [](const std::string& option, std::string_view text) { return parse_float(option, text, 0); },
      [](double value) { return fmt::format("{}", value); });
}

Key flag_key(std::string_view name, std::optional<bool> GroupOverride::*field) {
  return key(
      name, field, [](const std::string& option, std::string_view text) { return parse_flag(option, text); },
      [](bool on) { return std::string(on ? "true" : "false"); });
}

const std::vector<Key>& keys() {
  static const std::vector<Key> all = {
      key(
          "optimizer", &GroupOverride::kind,
          [](const std::string& option, std::string_view text) { return parse_choice<OptimizerKind>(option, text); },
          [](OptimizerKind kind) { return std::string(word_of(kind)); }),
      number_key("lr", &GroupOverride::learning_rate),
      number_key("momentum", &GroupOverride::momentum),
      number_key("dampening", &GroupOverride::dampening),
      flag_key("nesterov", &GroupOverride::nesterov),
      key("betas", &GroupOverride::betas, parse_betas, show_betas),
      number_key("eps", &GroupOverride::epsilon),
      number_key("weight_decay", &GroupOverride::weight_decay),
      number_key("epochs", &GroupOverride::epochs),
      flag_key("frozen", &GroupOverride::frozen)};
  return all;
}

const Key& find_key(std::string_view option, std::string_view text, std::string_view name) {
  std::string underscored(name);
  std::ranges::replace(underscored, '-', '_');
  const auto found = std::ranges::find(keys(), underscored, &Key::name);
  if (found != keys().end()) return *found;
  std::vector<std::string_view> names;
  for (const Key& each : keys()) names.push_back(each.name);
  throw bad_value(
      option, text,
      fmt::format("has the key '{}', expected one of {}.{}", name, fmt::join(names, ", "), did_you_mean(name, names)));
}

/// The parts between commas, but "betas=0.9,0.99" is one.
std::vector<std::string> settings_in(std::string_view text) {
  std::vector<std::string> settings;
  for (std::string& part : comma_separated(std::string(text))) {
    const bool goes_on = !settings.empty() && settings.back().starts_with("betas=") && !part.empty() &&
                         part.find('=') == std::string::npos && part.find_first_not_of("0123456789.e+-") == part.npos;
    if (goes_on)
      settings.back() += "," + part;
    else
      settings.push_back(std::move(part));
  }
  return settings;
}

GroupOverride parse_group(std::string_view option, std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size())
    throw bad_value(option, text, "must be PATTERN:key=value,..., such as '*.bias:weight_decay=0,lr=0.01'");
  GroupOverride group{.pattern = std::string(text.substr(0, colon))};
  for (const std::string& setting : settings_in(text.substr(colon + 1))) {
    const std::size_t equals = setting.find('=');
    const Key& found = find_key(option, text, std::string_view(setting).substr(0, equals));
    if (!found.show(group).empty())
      throw bad_value(option, text, fmt::format("has {} twice, expected each key once", found.name));
    if (equals == std::string::npos && !found.is_flag)
      throw bad_value(option, text, fmt::format("has '{}' without a value, expected {}=...", setting, setting));
    found.read(group, fmt::format("{} '{}'", option, group.pattern),
               equals == std::string::npos ? "true" : std::string_view(setting).substr(equals + 1));
  }
  return group;
}

std::string show_group(const GroupOverride& group) {
  std::vector<std::string> settings;
  for (const Key& each : keys())
    if (const std::string value = each.show(group); !value.empty())
      settings.push_back(fmt::format("{}={}", each.name, value));
  return fmt::format("{}:{}", group.pattern, fmt::join(settings, ","));
}

}  // namespace

std::vector<GroupOverride> parse_groups(std::string_view option, std::string_view text) {
  std::vector<GroupOverride> groups;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(kBetweenGroups), text.size());
    groups.push_back(parse_group(option, text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return groups;
}

std::string show_groups(const std::vector<GroupOverride>& groups) {
  std::string text;
  for (const GroupOverride& group : groups) {
    if (!text.empty()) text += kBetweenGroups;
    text += show_group(group);
  }
  return text;
}

Betas parse_betas(std::string_view option, std::string_view text) {
  const std::size_t comma = text.find(',');
  if (std::ranges::count(text, ',') != 1) throw bad_value(option, text, "must be two numbers, such as 0.9,0.999");
  const Betas betas{parse_number(option, text.substr(0, comma), 0), parse_number(option, text.substr(comma + 1), 0)};
  if (betas.first >= 1 || betas.second >= 1) throw bad_value(option, text, "must be two numbers below 1");
  return betas;
}

std::string show_betas(const Betas& betas) { return fmt::format("{},{}", betas.first, betas.second); }

}  // namespace gradring::train
