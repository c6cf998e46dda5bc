// SPDX-License-Identifier: Apache-2.0
#include "train/view/page/number_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace gradring::train::page {
namespace {

constexpr const char* kMissing = "–";

/// Three significant digits, without an exponent.
std::string three_digits(double value) {
  const double size = std::abs(value);
  const int decimals = size == 0 ? 0 : std::clamp(2 - static_cast<int>(std::floor(std::log10(size))), 0, 9);
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (decimals > 0) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
  }
  return text;
}

}  // namespace

std::string grouped(std::string number) {
  const std::size_t begin = number.find_first_of("0123456789");
  if (begin == std::string::npos) return number;
  const std::size_t end = std::min(number.find_first_not_of("0123456789", begin), number.size());
  for (std::size_t at = end; at > begin + 3;) number.insert(at -= 3, ",");
  return number;
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return kMissing;
  if (value != 0 && (std::abs(value) < 1e-4 || std::abs(value) >= 1e12)) return fmt::format("{:.3g}", value);
  return grouped(three_digits(value));
}

std::string count_text(std::int64_t value) { return grouped(fmt::format("{}", value)); }

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds)) return kMissing;
  if (seconds == 0) return "0 s";
  if (std::abs(seconds) < 0.9995e-3) return three_digits(1e6 * seconds) + " µs";
  if (std::abs(seconds) < 0.9995) return three_digits(1e3 * seconds) + " ms";
  if (std::abs(seconds) < 99.5) return three_digits(seconds) + " s";
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string percent_text(double fraction, int decimals) {
  return std::isfinite(fraction) ? fmt::format("{:.{}f} %", 100 * fraction, decimals) : kMissing;
}

}  // namespace gradring::train::page
