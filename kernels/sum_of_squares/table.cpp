// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/lib/level_copies.h"
#include "kernels/sum_of_squares/sum_of_squares.h"

namespace gradring::kernels::sum_of_squares {

GRADRING_DECLARE_COPIES(Variant, two_stage);  // 1_two_stage.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(two_stage)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sum_of_squares
