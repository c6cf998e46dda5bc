// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace gradring::data {

/// How one rank's positions of an epoch are cut into batches; the last one may be short and is kept.
struct BatchGeometry {
  std::int64_t samples = 0;
  std::int64_t batch_size = 1;

  std::int64_t steps() const { return (samples + batch_size - 1) / batch_size; }
  /// First position of batch `step`.
  std::int64_t begin(std::int64_t step) const { return std::min(step * batch_size, samples); }
  std::int64_t end(std::int64_t step) const { return std::min((step + 1) * batch_size, samples); }
};

}  // namespace gradring::data
