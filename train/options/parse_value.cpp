// SPDX-License-Identifier: Apache-2.0
#include "train/options/parse_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <sstream>

#include "kernels/base/nearest_name.h"
#include "kernels/base/printable.h"

namespace gradring::train {
namespace {

constexpr double kMegabyte = 1024.0 * 1024.0;
constexpr double kMostMegabytes = 1e6;

template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size();
}

/// "30s", "500ms", "2m", "30" in milliseconds; nothing if it is not one of them.
std::optional<double> read_milliseconds(std::string_view text) {
  struct Unit {
    std::string_view suffix;
    double milliseconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"", 1000}};
  const Unit& unit = *std::ranges::find_if(kUnits, [&](const Unit& it) { return text.ends_with(it.suffix); });
  double number = 0;
  if (!read_all(text.substr(0, text.size() - unit.suffix.size()), number)) return std::nullopt;
  return number * unit.milliseconds;
}

[[noreturn]] void refuse(std::string_view option, std::string_view text, const std::string& expected) {
  throw bad_value(option, text, "must be " + expected);
}

std::chrono::milliseconds milliseconds_within(std::string_view option, std::string_view text, double least, double most,
                                              const char* expected) {
  const auto milliseconds = read_milliseconds(text);
  if (!milliseconds || !(*milliseconds >= least && *milliseconds <= most)) refuse(option, text, expected);
  return std::chrono::milliseconds(std::llround(*milliseconds));
}

}  // namespace

UsageError bad_value(std::string_view option, std::string_view text, std::string_view reason) {
  return UsageError(printable(fmt::format("--{} is '{}', but {}", option, text, reason)));
}

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
    refuse(option, text, fmt::format("a finite number of at least {}", least));
  return value;
}

double parse_float(std::string_view option, std::string_view text, double least) {
  using Limits = std::numeric_limits<float>;
  const double value = parse_number(option, text, least);
  if (value != 0 && (value < Limits::min() || value > Limits::max()))
    refuse(option, text,
           fmt::format("{}a number from {:.3g} to {:.3g}, the range of fp32", least > 0 ? "" : "0 or ", Limits::min(),
                       Limits::max()));
  return value;
}

bool parse_flag(std::string_view option, std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  refuse(option, text, "true or false");
}

std::chrono::milliseconds parse_duration(std::string_view option, std::string_view text) {
  constexpr double kLongest = 1e12;  // a clock's nanoseconds hold it
  return milliseconds_within(option, text, 1, kLongest, "a time such as 500ms, 30s or 2m");
}

std::chrono::milliseconds parse_pause(std::string_view option, std::string_view text) {
  constexpr double kDay = 24 * 3600 * 1000;
  return milliseconds_within(option, text, 0, kDay, "a time such as 30s, 500ms or 2m, at most a day");
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

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  if (text.ends_with(',')) parts.emplace_back();
  return parts;
}

std::vector<std::string> comma_separated_words(const std::string& text) {
  std::vector<std::string> words = comma_separated(text);
  std::erase(words, "");
  return words;
}

}  // namespace gradring::train
