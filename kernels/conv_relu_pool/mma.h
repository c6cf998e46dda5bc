// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/conv_relu_pool/conv_relu_pool.h"

/// The passes of the variant "mma", by file.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace mma {

void forward(Stream& stream, const ForwardArgs& args);    // 3_mma_forward.cu
void backward(Stream& stream, const BackwardArgs& args);  // 3_mma_backward.cu
std::size_t workspace_bytes(const Geometry& g);

}  // namespace mma
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
