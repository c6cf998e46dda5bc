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
#include "train/options/parse_value.h"

namespace gradring::train {

// Builders of the kinds of options that there are many of. A `place` is what std::invoke turns a config into a
// reference with: a pointer to a member, or in().

template <class Group, class Value>
auto in(Group TrainConfig::*group, Value Group::*field) {
  return [group, field](auto& config) -> auto& { return config.*group.*field; };
}

TrainOption text_option(std::string name, std::string value, std::string help, std::string TrainConfig::*field);
TrainOption on_or_off_option(const std::string& name, std::string help, bool TrainConfig::*field);
TrainOption megabytes_option(const std::string& name, std::string help, std::size_t BucketLimits::*field);

template <class Place>
TrainOption word_option(const std::string& name, std::string help, std::span<const std::string_view> words,
                        Place place) {
  return {.name = name,
          .value = fmt::format("{}", fmt::join(words, "|")),
          .help = std::move(help),
          .read = [name, words, place](
                      TrainConfig& config,
                      std::string_view given) { std::invoke(place, config) = parse_word(name, given, words); },
          .show = [place](const TrainConfig& config) { return quoted(std::invoke(place, config)); }};
}

template <class Place>
TrainOption integer_option(const std::string& name, std::string help, IntegerRange range, Place place) {
  return {.name = name,
          .value = "N",
          .help = std::move(help),
          .read = [name, range, place](
                      TrainConfig& config,
                      std::string_view given) { std::invoke(place, config) = parse_integer(name, given, range); },
          .show = [place](const TrainConfig& config) { return std::to_string(std::invoke(place, config)); }};
}

/// A number from `least` up.
template <class Place>
TrainOption number_option(const std::string& name, std::string help, Place place, double least = 0) {
  return {.name = name,
          .value = "F",
          .help = std::move(help),
          .read = [name, place, least](
                      TrainConfig& config,
                      std::string_view given) { std::invoke(place, config) = parse_number(name, given, least); },
          .show = [place](const TrainConfig& config) { return fmt::format("{}", std::invoke(place, config)); }};
}

template <class Place>
TrainOption flag_option(const std::string& name, std::string help, Place place) {
  return {
      .name = name,
      .value = {},
      .help = std::move(help),
      .read = [name, place](TrainConfig& config,
                            std::string_view given) { std::invoke(place, config) = parse_flag(name, given); },
      .show =
          [place](const TrainConfig& config) { return std::string(std::invoke(place, config) ? "true" : "false"); }};
}

// Options of a single kind.
TrainOption seed_option();
TrainOption device_option();
TrainOption timeout_option();
TrainOption checkpoint_activations_option();
TrainOption activation_budget_option();
TrainOption inject_option();

}  // namespace gradring::train
