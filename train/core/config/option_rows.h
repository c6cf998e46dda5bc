// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/core/config/options.h"
#include "train/options/parse_value.h"

namespace gradring::train::option_rows {

using Options = std::vector<TrainOption>;

// Builders of rows. A `field` is what std::invoke turns a config into a reference with: a pointer to a member, or in().

template <class Group, class Value>
auto in(Group TrainConfig::*group, Value Group::*field) {
  return [group, field](auto& config) -> auto& { return config.*group.*field; };
}

/// `read` takes the option's name and the text and returns the value; `show` is its inverse, a TOML literal.
template <class Field, class Read, class Show>
TrainOption option(const std::string& name, std::string value, std::string help, Field field, Read read, Show show) {
  TrainOption row = {.name = name, .value = std::move(value), .help = std::move(help)};
  row.read = [=](TrainConfig& config, std::string_view given) { std::invoke(field, config) = read(name, given); };
  row.show = [=](const TrainConfig& config) { return show(std::invoke(field, config)); };
  return row;
}

inline TrainOption text_option(const std::string& name, std::string value, std::string help,
                               std::string TrainConfig::*field) {
  const auto read = [](std::string_view, std::string_view given) { return std::string(given); };
  return option(name, std::move(value), std::move(help), field, read, quoted);
}

/// `words`: those of the choice that the option takes.
template <class Choice, class Field>
TrainOption choice_option(const std::string& name, std::string help, Field field,
                          std::span<const std::string_view> words = kWords<Choice>) {
  const auto read = [words](std::string_view of, std::string_view given) {
    return parse_choice<Choice>(of, given, words);
  };
  return option(name, fmt::format("{}", fmt::join(words, "|")), std::move(help), field, read,
                [](Choice value) { return quoted(std::string(word_of(value))); });
}

inline TrainOption word_option(const std::string& name, std::string help, std::span<const std::string_view> words,
                               std::string TrainConfig::*field) {
  const auto read = [words](std::string_view of, std::string_view given) { return parse_word(of, given, words); };
  return option(name, fmt::format("{}", fmt::join(words, "|")), std::move(help), field, read, quoted);
}

inline TrainOption on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field) {
  static constexpr std::string_view kOnOff[] = {"on", "off"};
  const auto read = [](std::string_view of, std::string_view given) { return parse_word(of, given, kOnOff) == "on"; };
  return option(name, "on|off", std::move(help), field, read, [](bool on) { return quoted(on ? "on" : "off"); });
}

template <class Field>
TrainOption integer_option(const std::string& name, std::string help, IntegerRange range, Field field) {
  const auto read = [range](std::string_view of, std::string_view given) { return parse_integer(of, given, range); };
  return option(name, "N", std::move(help), field, read, [](std::int64_t value) { return std::to_string(value); });
}

/// A number from `least` up, which training computes with in fp32.
template <class Field>
TrainOption number_option(const std::string& name, std::string help, Field field, double least = 0) {
  const auto read = [least](std::string_view of, std::string_view given) { return parse_float(of, given, least); };
  return option(name, "F", std::move(help), field, read, [](auto value) { return fmt::format("{}", value); });
}

template <class Field>
TrainOption flag_option(const std::string& name, std::string help, Field field) {
  return option(name, "", std::move(help), field, parse_flag,
                [](bool on) { return std::string(on ? "true" : "false"); });
}

template <class Field>
TrainOption seed_option(const std::string& name, std::string help, Field field) {
  return option(name, "N", std::move(help), field, parse_seed, [](std::uint64_t seed) {
    const std::string digits = std::to_string(seed);
    const bool fits = seed <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    return fits ? digits : quoted(digits);  // TOML's integers end there
  });
}

inline TrainOption resumed(OnResume how, TrainOption option) {
  option.on_resume = how;
  return option;
}

inline TrainOption changing(Changes what, TrainOption option) {
  option.changes = what;
  return option;
}

inline Options changing(Changes what, Options options) {
  for (TrainOption& option : options) option.changes = what;
  return options;
}

// The rows of config/data_options.cpp and config/run_options.cpp, by their headings in --help.
Options data_options();
Options parallelism_options();
Options communication_options();
Options checkpoint_options();
Options output_options();
Options device_options();

}  // namespace gradring::train::option_rows
