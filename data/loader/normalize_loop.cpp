// SPDX-License-Identifier: Apache-2.0
#include "data/loader/normalize.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/lib/native_vector.h"

namespace gradring::data {
inline namespace GRADRING_KERNEL_COPY {
namespace {

/// a / b, where inverse is 1 / b: a product and one correction step. For all but a few b it rounds as a division, and
/// faster.
/// Source    Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990.
float divided(float a, float b, float inverse) {
  const float quotient = a * inverse;
  return std::fma(std::fma(-b, quotient, a), inverse, quotient);
}

void run(const NormalizeRow& row, std::span<const std::uint8_t> pixels, std::span<float> out) {
  const float* __restrict mean = row.means.data();
  const float* __restrict std = row.stds.data();
  const float* __restrict inverse_std = row.inverse_stds.data();
  for (std::size_t begin = 0; begin < pixels.size(); begin += row.means.size()) {
    const std::size_t count = std::min(row.means.size(), pixels.size() - begin);
    const std::uint8_t* __restrict x = pixels.data() + begin;
    float* __restrict y = out.data() + begin;
    for (std::size_t i = 0; i < count; ++i) {
      const float scaled = divided(static_cast<float>(x[i]), 255.0f, 1.0f / 255.0f);
      y[i] = divided(scaled - mean[i], std[i], inverse_std[i]);
    }
  }
}

}  // namespace

NormalizeLoop normalize_loop() { return {.run = run, .is_fast = kernels::lib::kFusedMultiplyAdd}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::data
