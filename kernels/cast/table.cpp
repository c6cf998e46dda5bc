// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/cast/cast.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::cast {

GRADRING_DECLARE_COPIES(Variant, flat);  // 1_flat.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(flat)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::cast
