// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "kernels/ops/conv2d/variants.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

Variant mma_tiles();  // 3_mma_forward.cu

/// Of the variant "direct", in 1_direct.cu: for geometries that no network asks the gradient of the data for.
void direct_dgrad(Stream& stream, const BackwardArgs& args);

/// The passes of the variant "mma", and what others have in common with it.
namespace mma {

/// conv2d's output, with bias and ReLU, in the workspace; then it is pooled: for any geometry.
void unfused_forward(Stream& stream, const ForwardArgs& args, const conv2d::Variant& conv2d);  // 3_mma_forward.cu

/// By kernels for some geometries, else by dz in memory and the gradients of conv2d's variant `conv2d`.
void backward(Stream& stream, const BackwardArgs& args, const conv2d::Variant& conv2d);  // 3_mma_backward.cu
std::size_t partial_sum_bytes(const Geometry& g, const conv2d::Variant& conv2d);
std::size_t workspace_bytes(const Geometry& g, const conv2d::Variant& conv2d);  // for them, then for dz

}  // namespace mma

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
