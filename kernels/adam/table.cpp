// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/adam/adam.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::adam {

GRADRING_DECLARE_COPIES(Variant, flat);    // 1_flat.cu
GRADRING_DECLARE_COPIES(Variant, vector);  // 2_vector.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)(), GRADRING_COPY_TO_RUN(vector)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam
