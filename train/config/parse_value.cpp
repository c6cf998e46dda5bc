// SPDX-License-Identifier: Apache-2.0
#include "train/config/parse_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kernels/runtime/nearest_name.h"
#include "train/config/usage_error.h"

namespace gradring::train {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;
constexpr double kMostMegabytes = 1e6;

template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

[[noreturn]] void refuse(std::string_view option, std::string_view text, const std::string& expected) {
  throw UsageError(fmt::format("--{} is '{}', but must be {}", option, text, expected));
}

}  // namespace

std::int64_t parse_integer(std::string_view option, std::string_view text, IntegerRange range) {
  std::int64_t value = 0;
  if (!read_all(text, value) || value < range.least || value > range.most)
    refuse(option, text, fmt::format("a whole number from {} to {}", range.least, range.most));
  return value;
}

std::uint64_t parse_seed(std::string_view option, std::string_view text) {
  std::uint64_t value = 0;
  if (!read_all(text, value)) refuse(option, text, "a whole number from 0 to 2^64 - 1");
  return value;
}

double parse_number(std::string_view option, std::string_view text, double least) {
  double value = 0;
  if (!read_all(text, value) || !std::isfinite(value) || value < least)
    refuse(option, text, fmt::format("a number of at least {}", least));
  return value;
}

bool parse_flag(std::string_view option, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  refuse(option, text, "true or false");
}

std::chrono::milliseconds parse_duration(std::string_view option, std::string_view text) {
  constexpr double kLongest = 1e12;  // in milliseconds; a clock's nanoseconds hold it
  double unit = 1000;
  std::string_view number = text;
  if (number.ends_with("ms")) {
    unit = 1;
    number.remove_suffix(2);
  } else if (number.ends_with('s')) {
    number.remove_suffix(1);
  } else if (number.ends_with('m')) {
    unit = 60'000;
    number.remove_suffix(1);
  }
  double value = 0;
  const bool understood = read_all(number, value) && value * unit >= 1 && value * unit <= kLongest;
  if (!understood) refuse(option, text, "a time such as 500ms, 30s or 2m");
  return std::chrono::milliseconds(std::llround(value * unit));
}

std::size_t parse_megabytes(std::string_view option, std::string_view text) {
  const double megabytes = parse_number(option, text, 0);
  if (megabytes * kMegabyte < 1 || megabytes > kMostMegabytes)
    refuse(option, text, fmt::format("a size in megabytes above 0, at most {:.0f}", kMostMegabytes));
  return static_cast<std::size_t>(megabytes * kMegabyte);
}

std::string parse_word(std::string_view option, std::string_view text, std::span<const std::string_view> words) {
  if (std::find(words.begin(), words.end(), text) == words.end())
    refuse(option, text, fmt::format("one of {}.{}", fmt::join(words, ", "), did_you_mean(text, words)));
  return std::string(text);
}

std::string show_duration(std::chrono::milliseconds duration) {
  const auto milliseconds = duration.count();
  return milliseconds % 1000 == 0 ? fmt::format("{}s", milliseconds / 1000) : fmt::format("{}ms", milliseconds);
}

std::string show_megabytes(std::size_t bytes) { return fmt::format("{}", static_cast<double>(bytes) / kMegabyte); }

}  // namespace gradring::train
