// SPDX-License-Identifier: Apache-2.0
// Closed choices: enums whose values have a word each, in options, files and messages.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "train/options/command_line.h"
#include "train/options/parse_value.h"

namespace gradring::train {

/// The words of an enum, in the order of its values, which count from 0: the one table that options are read by, shown
/// by, and listed from in --help. Specialized beside the enum.
template <class Choice>
inline constexpr std::span<const std::string_view> kWords{};

/// "rollback" of OnNan::roll_back.
template <class Choice>
constexpr std::string_view word_of(Choice value) {
  return kWords<Choice>[static_cast<std::size_t>(value)];
}

/// The inverse. `words`: those that the option accepts.
///
/// Errors    UsageError: the value found, the words, and the nearest.
template <class Choice>
Choice parse_choice(std::string_view option, std::string_view text,
                    std::span<const std::string_view> words = kWords<Choice>) {
  parse_word(option, text, words);
  return static_cast<Choice>(std::ranges::find(kWords<Choice>, text) - std::ranges::begin(kWords<Choice>));
}

/// The option of a command other than `gradring train`, whose rows are in train/core/config.
template <class Choice>
Option choice_option(const std::string& name, const std::string& help, Choice& value) {
  return {.name = name,
          .value = fmt::format("{}", fmt::join(kWords<Choice>, "|")),
          .help = help,
          .read = [name, &value](std::string_view text) { value = parse_choice<Choice>(name, text); }};
}

}  // namespace gradring::train
