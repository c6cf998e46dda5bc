// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/ema/ema.h"

namespace gradring::kernels::ema {
inline namespace GRADRING_KERNEL_COPY {

Variant flat();  // 1_flat.cu

std::span<const Variant> variants() {
  static const std::array kTable = {flat()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::ema
