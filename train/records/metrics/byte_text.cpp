// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/byte_text.h"

#include <fmt/format.h>

#include <cmath>
#include <span>

namespace gradring::train {
namespace {

std::string in_units(double bytes, double step, std::span<const char* const> units) {
  constexpr double kLeastFourDigits = 999.5;
  if (!std::isfinite(bytes)) return "-";
  std::size_t unit = 0;
  for (; std::abs(bytes) >= kLeastFourDigits && unit + 1 < units.size(); ++unit) bytes /= step;
  const double size = std::abs(bytes);
  const int decimals = unit == 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}", bytes, decimals, units[unit]);
}

}  // namespace

std::string memory_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  return in_units(bytes, 1024, kUnits);
}

std::string file_size_text(double bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  return in_units(bytes, 1000, kUnits);
}

}  // namespace gradring::train
