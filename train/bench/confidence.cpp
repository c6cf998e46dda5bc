// SPDX-License-Identifier: Apache-2.0
#include "train/bench/confidence.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/base/error.h"

namespace gradring::train::bench {

double student_t(std::size_t degrees) {
  static constexpr std::array kQuantiles = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                            2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                            2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042};
  if (degrees == 0) return std::numeric_limits<double>::infinity();
  if (degrees <= kQuantiles.size()) return kQuantiles[degrees - 1];
  constexpr double z = 1.959964;  // of the normal distribution
  const auto n = static_cast<double>(degrees);
  return z + (z * z * z + z) / (4 * n) + (5 * std::pow(z, 5) + 16 * std::pow(z, 3) + 3 * z) / (96 * n * n);
}

MeanOf mean_of(std::span<const double> values) {
  check(!values.empty(), "there are no values to take the mean of");
  const auto count = static_cast<double>(values.size());
  MeanOf result{.count = values.size(), .mean = std::accumulate(values.begin(), values.end(), 0.0) / count};
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.deviation = std::sqrt(squares / (count - 1));
  result.half_width = values.size() > 1 ? student_t(values.size() - 1) * result.deviation / std::sqrt(count)
                                        : std::numeric_limits<double>::infinity();
  return result;
}

std::string interval_text(const MeanOf& of) {
  if (!std::isfinite(of.half_width)) return "-";
  return fmt::format("± {:.3f}", of.half_width);
}

}  // namespace gradring::train::bench
