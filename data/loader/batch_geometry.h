// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradring::data {

/// How one rank's positions of an epoch are cut into batches; the last one may be short and is kept. With windows, no batch
/// crosses from one into the next: the last one of each may be short, too.
struct BatchGeometry {
  std::int64_t samples = 0;
  std::int64_t batch_size = 1;
  std::int64_t window = 0;  ///< samples that make an optimizer step; 0: nothing but batches

  std::int64_t steps() const {
    if (window == 0) return ceil_div(samples, batch_size);
    return samples / window * in_window() + ceil_div(samples % window, batch_size);
  }
  /// First position of batch `step`.
  std::int64_t begin(std::int64_t step) const {
    if (window == 0) return std::min(step * batch_size, samples);
    return std::min(step / in_window() * window + step % in_window() * batch_size, samples);
  }
  std::int64_t end(std::int64_t step) const { return begin(step + 1); }

 private:
  std::int64_t in_window() const { return ceil_div(window, batch_size); }
  static std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
};

}  // namespace gradring::data
