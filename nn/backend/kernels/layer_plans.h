// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "kernels/kernel_set.h"
#include "nn/backend/backend.h"

namespace gradring::nn {

// Plans of one node or a fused group, each by entries of the kernel tables.

/// Geometry of a convolution node.
kernels::conv2d::Geometry conv2d_geometry(const NodeSpec& node);

/// Convolution, then bias, by two kernels each way.
std::unique_ptr<Plan> make_conv2d_plan(const NodeSpec& node, const kernels::conv2d::Variant& conv,
                                       const kernels::bias::Variant& bias);
std::unique_ptr<Plan> make_relu_plan(const NodeSpec& node, const kernels::relu::Variant& relu);
/// Saves one code per window: the index of its maximum.
std::unique_ptr<Plan> make_max_pool2d_plan(const NodeSpec& node, const kernels::max_pool2d::Variant& pool);

/// Whether the first three nodes are convolution, ReLU and a max pooling that the fused kernel computes.
bool fits_conv_relu_pool(std::span<const NodeSpec> nodes);
/// Convolution, bias, ReLU and max pooling by one kernel each way. Saves one code per window, not the convolution's output.
std::unique_ptr<Plan> make_conv_relu_pool_plan(std::span<const NodeSpec> nodes,
                                               const kernels::conv_relu_pool::Variant& variant);

/// y = x w^T + b by one matrix product and one bias kernel; backward is two products.
std::unique_ptr<Plan> make_linear_plan(const NodeSpec& node, const kernels::gemm::Variant& gemm,
                                       const kernels::bias::Variant& bias);
std::unique_ptr<LossPlan> make_cross_entropy_plan(const CrossEntropySpec& spec,
                                                  const kernels::softmax_cross_entropy::Variant& kernel);

/// Whether `last` is a linear layer to few enough classes for the fused kernel.
bool fits_linear_cross_entropy(const CrossEntropySpec& spec, const NodeSpec& last);
/// The last linear layer, softmax, cross-entropy and all gradients in one kernel: the logits' gradient is not rounded.
std::unique_ptr<LossPlan> make_linear_cross_entropy_plan(const CrossEntropySpec& spec, const NodeSpec& last,
                                                         const kernels::linear_cross_entropy::Variant& kernel);

}  // namespace gradring::nn
