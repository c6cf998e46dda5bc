// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/gemm/gemm.h"
#include "kernels/lib/level_copies.h"

namespace gradring::kernels::gemm {

GRADRING_DECLARE_COPIES(Variant, strips);  // 1_strips.cu

inline namespace GRADRING_KERNEL_COPY {

Variant tiled();           // 2_tiled.cu
Variant wmma_fragments();  // 3_wmma.cu
Variant mma();             // 4_mma.cu
Variant wgmma();           // 5_wgmma.cu

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::gemm
