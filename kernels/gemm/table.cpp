// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/gemm/gemm.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

Variant strips();          // 1_strips.cu
Variant tiled();           // 2_tiled.cu
Variant wmma_fragments();  // 3_wmma.cu
Variant mma();             // 4_mma.cu

std::span<const Variant> variants() {
  static const std::array kTable = {strips(), tiled(), wmma_fragments(), mma()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
