// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/adam/adam.h"

namespace gradring::kernels::adam {
inline namespace GRADRING_KERNEL_COPY {

Variant flat();    // 1_flat.cu
Variant vector();  // 2_vector.cu

std::span<const Variant> variants() {
  static const std::array kTable = {flat(), vector()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::adam
