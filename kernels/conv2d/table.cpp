// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/conv2d/conv2d.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::conv2d {

GRADRING_DECLARE_COPIES(Variant, direct);  // 1_direct.cu

inline namespace GRADRING_KERNEL_COPY {

Variant tiled();       // 2_tiled.cu
Variant wmma_tiles();  // 3_wmma.cu
Variant mma();         // 4_mma.cu

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(direct)(), tiled(), wmma_tiles(), mma()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
