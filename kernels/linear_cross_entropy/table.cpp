// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/linear_cross_entropy/linear_cross_entropy.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::linear_cross_entropy {

GRADRING_DECLARE_COPIES(Variant, two_launches);  // 1_two_launches.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(two_launches)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::linear_cross_entropy
