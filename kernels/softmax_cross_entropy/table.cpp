// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace gradring::kernels::softmax_cross_entropy {
inline namespace GRADRING_KERNEL_COPY {

Variant row_per_thread();  // 1_row_per_thread.cu

std::span<const Variant> variants() {
  static const std::array kTable = {row_per_thread()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::softmax_cross_entropy
