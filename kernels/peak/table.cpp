// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/peak/peak.h"

namespace gradring::kernels::peak {
inline namespace GRADRING_KERNEL_COPY {

Variant multiply_adds();  // 1_multiply_adds.cu
Variant mma();            // 2_mma.cu

std::span<const Variant> variants() {
  static const std::array kTable = {multiply_adds(), mma()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::peak
