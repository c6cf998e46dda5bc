// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/conv2d/conv2d.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

Variant direct();  // 1_direct.cu
Variant tiled();   // 2_tiled.cu

std::span<const Variant> variants() {
  static const std::array kTable = {direct(), tiled()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
