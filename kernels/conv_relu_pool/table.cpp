// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/conv_relu_pool/conv_relu_pool.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::conv_relu_pool {

GRADRING_DECLARE_COPIES(Variant, direct);      // 1_direct.cu
GRADRING_DECLARE_COPIES(Variant, native_cpu);  // 2_native.cpp; no_native.cpp in the CUDA module

inline namespace GRADRING_KERNEL_COPY {

Variant mma_tiles();  // 3_mma_forward.cu, 3_mma_backward.cu

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(direct)(), GRADRING_COPY_TO_RUN(native_cpu)(), mma_tiles()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
