// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/bias/bias.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::bias {

GRADRING_DECLARE_COPIES(Variant, rows);  // 1_rows.cu

inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(rows)()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
