// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/sum_of_squares/sum_of_squares.h"

namespace gradring::kernels::sum_of_squares {
inline namespace GRADRING_KERNEL_COPY {

Variant two_stage();  // 1_two_stage.cu

std::span<const Variant> variants() {
  static const std::array kTable = {two_stage()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sum_of_squares
