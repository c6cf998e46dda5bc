// SPDX-License-Identifier: Apache-2.0
#include "train/records/metrics/loss_text.h"

#include <fmt/format.h>

#include <cmath>

namespace gradring::train {

std::string loss_text(double loss) {
  constexpr double kLarge = 1e7;  // more digits than a table has room for
  return std::isfinite(loss) && std::abs(loss) >= kLarge ? fmt::format("{:.3e}", loss) : fmt::format("{:.4f}", loss);
}

}  // namespace gradring::train
