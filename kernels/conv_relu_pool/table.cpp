// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

Variant direct();      // 1_direct.cu
Variant native_cpu();  // 2_native.cpp; no_native.cpp in the CUDA module
Variant mma_tiles();   // 3_mma_forward.cu, 3_mma_backward.cu

std::span<const Variant> variants() {
  static const std::array kTable = {direct(), native_cpu(), mma_tiles()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
