// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/gemm/rungs.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::gemm {
inline namespace GRADRING_KERNEL_COPY {

std::span<const Variant> variants() {
  static const std::array kTable = {GRADRING_COPY_TO_RUN(strips)(), tiled(), wmma_fragments(), mma(), wgmma()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
