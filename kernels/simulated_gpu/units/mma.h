// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "kernels/simulated_gpu/units/fragment.h"
#include "kernels/simulated_gpu/units/half.h"

namespace gradring::simulated_gpu {

/// mma.sync.aligned.m16n8k16.row.col.f32.<type>.<type>.f32: D = A B + C.
///
/// Aliasing  A row of d may be a row of a, b or c.
/// Numerics  multiply_add's.
/// Source    PTX ISA 9.0: 9.7.14.5.8 (fragments), 9.7.14.5.14 (mma).
void mma_m16n8k16(Half type, const std::array<ConstRow, 4>& a, const std::array<ConstRow, 2>& b,
                  const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d);

/// mma.sync.aligned.m16n8k8.row.col.f32.<type>.<type>.f32, likewise.
///
/// Source    PTX ISA 9.0: 9.7.14.5.7 (fragments), 9.7.14.5.14 (mma).
void mma_m16n8k8(Half type, const std::array<ConstRow, 2>& a, const std::array<ConstRow, 1>& b,
                 const std::array<ConstRow, 4>& c, const std::array<Row, 4>& d);

}  // namespace gradring::simulated_gpu
