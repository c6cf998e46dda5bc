// SPDX-License-Identifier: Apache-2.0
#include "kernels/lib/level_copies.h"
#include "kernels/simulated_gpu/units/half.h"
#include "kernels/simulated_gpu/units/product.h"

namespace gradring::simulated_gpu {

GRADRING_DECLARE_COPIES(UnitLoops, unit_loops);  // unit_loops.cpp

namespace {

const UnitLoops& loops() {
  static const UnitLoops loops = GRADRING_COPY_TO_RUN(unit_loops)();
  return loops;
}

}  // namespace

void set_elements(const float (&elements)[16][16], LeftMatrix& a) { loops().set_elements(elements, a); }

void read_fragment(Half type, std::span<const ConstRow> registers, LeftMatrix& a) {
  loops().read_left(type, registers, a);
}

void read_fragment(Half type, std::span<const ConstRow> registers, RightMatrix& b) {
  loops().read_right(type, registers, b);
}

void multiply_add(const LeftMatrix& a, const RightMatrix& b, int inner, bool keeps, std::span<const Row> d) {
  loops().multiply_add(a, b, inner, keeps, d);
}

void to_f32(Half type, const std::uint16_t* from, float* to, std::size_t elements) {
  loops().to_f32(type, from, to, elements);
}

void to_half(Half type, const float* from, std::uint16_t* to, std::size_t elements) {
  loops().to_half(type, from, to, elements);
}

}  // namespace gradring::simulated_gpu
