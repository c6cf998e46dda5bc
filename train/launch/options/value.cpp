// SPDX-License-Identifier: Apache-2.0
#include "train/launch/options/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <string_view>

#include "kernels/runtime/error.h"

namespace gradring::train {

int whole_number(const std::string& text, int lowest, int highest) {
  int number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < lowest || number > highest)
    throw InvalidArgument(fmt::format("must be a whole number from {} to {}", lowest, highest));
  return number;
}

std::chrono::milliseconds duration(const std::string& text) {
  struct Unit {
    std::string_view suffix;
    double milliseconds;
  };
  constexpr Unit kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"", 1000}};
  constexpr double kLongest = 24 * 3600 * 1000;
  const Unit& unit = *std::ranges::find_if(kUnits, [&](const Unit& it) { return text.ends_with(it.suffix); });
  double number = 0;
  const char* end = text.data() + text.size() - unit.suffix.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const double milliseconds = number * unit.milliseconds;
  if (error != std::errc() || stop != end || !(milliseconds >= 0 && milliseconds <= kLongest))
    throw InvalidArgument("must be a time such as 30s, 500ms or 2m, at most a day");
  return std::chrono::milliseconds(std::llround(milliseconds));
}

std::vector<std::string> comma_separated(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
  if (text.ends_with(',')) parts.emplace_back();
  return parts;
}

}  // namespace gradring::train
