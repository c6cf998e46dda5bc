// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/simulated_gpu/units/fragment.h"
#include "kernels/simulated_gpu/units/half.h"
#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {

/// The loops of product.h and half.h, compiled once for each level of the instruction set (kernels/lib/level_copies.h).
struct UnitLoops {
  void (*set_elements)(const float (&elements)[16][16], LeftMatrix& a);
  void (*read_left)(Half type, std::span<const ConstRow> registers, LeftMatrix& a);
  void (*read_right)(Half type, std::span<const ConstRow> registers, RightMatrix& b);
  void (*multiply_add)(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d);
  void (*to_f32)(Half type, const std::uint16_t* from, float* to, std::size_t elements);
  void (*to_half)(Half type, const float* from, std::uint16_t* to, std::size_t elements);
};

}  // namespace gradring::simulated_gpu
