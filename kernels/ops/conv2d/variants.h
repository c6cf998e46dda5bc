// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/conv2d/conv2d.h"

/// Steps of the ladder that others are made of, here and in other operations.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

Variant mma();    // 4_mma.cu
Variant wgmma();  // 5_wgmma.cu

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
