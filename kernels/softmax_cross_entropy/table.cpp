// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/lib/level_copies.h"
#include "kernels/softmax_cross_entropy/softmax_cross_entropy.h"

namespace gradring::kernels::softmax_cross_entropy {

GRADRING_DECLARE_COPIES(Variant, row_per_thread);  // 1_row_per_thread.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(row_per_thread)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::softmax_cross_entropy
