// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/gather_batch/gather_batch.h"

namespace gradring::kernels::gather_batch {
inline namespace GRADRING_KERNEL_COPY {

Variant rows();  // 1_rows.cu

std::span<const Variant> variants() {
  static const std::array kTable = {rows()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gather_batch
