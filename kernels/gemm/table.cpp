// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/gemm/gemm.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

Variant strips();  // 1_strips.cu

std::span<const Variant> variants() {
  static const std::array kTable = {strips()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
