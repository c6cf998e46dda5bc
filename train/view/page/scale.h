// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gradring::train::page {

enum class ScaleKind : std::uint8_t { linear, logarithmic };

/// Where a value lies on an axis.
class Scale {
 public:
  struct Tick {
    double value = 0;
    std::string label{};
  };

  /// From `low` to `high`; ends that are reversed, or equal to nine digits, are widened. Logarithmic becomes linear unless
  /// both ends are positive.
  Scale(ScaleKind kind, double low, double high);

  /// 0 at the low end, 1 at the high end.
  double at(double value) const;
  /// At most about `most` round values within the ends.
  std::vector<Tick> ticks(int most, bool percent = false) const;

  double low() const { return low_; }
  double high() const { return high_; }
  /// The same with ends at round values.
  Scale rounded(int most) const;

 private:
  double step(int most) const;

  ScaleKind kind_;
  double low_;
  double high_;
};

}  // namespace gradring::train::page
