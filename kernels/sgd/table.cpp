// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/lib/level_copies.h"
#include "kernels/sgd/sgd.h"

namespace gradring::kernels::sgd {

GRADRING_DECLARE_COPIES(Variant, flat);    // 1_flat.cu
GRADRING_DECLARE_COPIES(Variant, vector);  // 2_vector.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)(), GRADRING_COPY_TO_RUN(vector)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::sgd
