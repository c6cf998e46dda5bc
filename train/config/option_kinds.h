// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "train/config/options.h"
#include "train/config/parse_value.h"

namespace gradring::train {

// The kinds of options that `gradring train` has many of. A `place` is what std::invoke makes a value's place of, with a config:
// a pointer to a member, or in().

/// Where a value stands that belongs to a group.
template <class Group, class Value>
auto in(Group TrainConfig::*group, Value Group::*field) {
  return [group, field](auto& config) -> auto& { return config.*group.*field; };
}

/// A TOML basic string.
std::string quoted(const std::string& text);

/// An option whose value is any text.
Option text_option(std::string name, std::string value, std::string help, std::string TrainConfig::*field);

/// An option that is one of a few words; --help lists them. `words` must outlive the option.
template <class Place>
Option word_option(const std::string& name, std::string help, std::span<const std::string_view> words, Place place) {
  return {name, fmt::format("{}", fmt::join(words, "|")), std::move(help),
          [name, words, place](TrainConfig& config, std::string_view given) {
            std::invoke(place, config) = parse_word(name, given, words);
          },
          [place](const TrainConfig& config) { return quoted(std::invoke(place, config)); }};
}

template <class Place>
Option integer_option(const std::string& name, std::string help, IntegerRange range, Place place) {
  return {name, "N", std::move(help),
          [name, range, place](TrainConfig& config, std::string_view given) {
            std::invoke(place, config) = parse_integer(name, given, range);
          },
          [place](const TrainConfig& config) { return std::to_string(std::invoke(place, config)); }};
}

/// A number from `least` up.
template <class Place>
Option number_option(const std::string& name, std::string help, Place place, double least = 0) {
  return {name, "F", std::move(help),
          [name, place, least](TrainConfig& config, std::string_view given) {
            std::invoke(place, config) = parse_number(name, given, least);
          },
          [place](const TrainConfig& config) { return fmt::format("{}", std::invoke(place, config)); }};
}

template <class Place>
Option flag_option(const std::string& name, std::string help, Place place) {
  return {name, "", std::move(help),
          [name, place](TrainConfig& config, std::string_view given) {
            std::invoke(place, config) = parse_flag(name, given);
          },
          [place](const TrainConfig& config) { return std::string(std::invoke(place, config) ? "true" : "false"); }};
}

/// An option that is on or off, by these words.
Option on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field);

/// Bytes of a bucket, given in MiB.
Option megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field);

}  // namespace gradring::train
