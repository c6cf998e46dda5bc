// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/options/usage_error.h"

namespace gradring::train {

/// The integers that an option takes, both ends included.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = std::numeric_limits<std::int32_t>::max();
};

/// What a reader throws: "--lr is 'x', but must be a finite number". `reason` begins with what follows "but".
UsageError bad_value(std::string_view option, std::string_view text, std::string_view reason);

/// Readers of option values. Each takes the option's name for the message, and the whole text: no blanks, nothing
/// behind it.
///
/// Errors    UsageError: the value found, and what was expected.
std::int64_t parse_integer(std::string_view option, std::string_view text, IntegerRange range);
std::uint64_t parse_seed(std::string_view option, std::string_view text);
/// A finite number of at least `least`.
double parse_number(std::string_view option, std::string_view text, double least);
/// 0 or a number that fp32 holds without loss of range, of at least `least`.
double parse_float(std::string_view option, std::string_view text, double least);
/// true, false, 1 or 0.
bool parse_flag(std::string_view option, std::string_view text);
/// "30s", "500ms", "2m"; a bare number is seconds. At least a millisecond.
std::chrono::milliseconds parse_duration(std::string_view option, std::string_view text);
/// The same, but from 0 to a day.
std::chrono::milliseconds parse_pause(std::string_view option, std::string_view text);
/// Megabytes of 2^20 bytes, fractions allowed, as bytes; at least one.
std::size_t parse_megabytes(std::string_view option, std::string_view text);
/// One of several words; the message names the nearest.
std::string parse_word(std::string_view option, std::string_view text, std::span<const std::string_view> words);

/// The inverse of parse_duration and parse_megabytes.
std::string show_duration(std::chrono::milliseconds duration);
std::string show_megabytes(std::size_t bytes);

/// "a,b,c" in its parts; nothing for "".
std::vector<std::string> comma_separated(const std::string& text);
/// The same without empty parts.
std::vector<std::string> comma_separated_words(const std::string& text);

}  // namespace gradring::train
