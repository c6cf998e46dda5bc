// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

void to_f32(Half type, const std::uint16_t* __restrict from, float* __restrict to, std::size_t elements) {
  if (type == Half::f16) {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f16_to_f32(from[i]);
  } else {
    for (std::size_t i = 0; i < elements; ++i) to[i] = bf16_to_f32(from[i]);
  }
}

void to_half(Half type, const float* __restrict from, std::uint16_t* __restrict to, std::size_t elements) {
  if (type == Half::f16) {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f32_to_f16(from[i]);
  } else {
    for (std::size_t i = 0; i < elements; ++i) to[i] = f32_to_bf16(from[i]);
  }
}

}  // namespace gradring::simulated_gpu
