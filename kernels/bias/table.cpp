// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/bias/bias.h"

namespace gradring::kernels::bias {
inline namespace GRADRING_KERNEL_COPY {

Variant rows();  // 1_rows.cu

std::span<const Variant> variants() {
  static const std::array kTable = {rows()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
