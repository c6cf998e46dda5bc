// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "nn/backend/backend.h"
#include "nn/backend/cuda/cublaslt.h"
#include "nn/backend/cuda/helper_kernels.h"

namespace gradring::nn {

/// A linear layer, and a ReLU right behind it, by cuBLASLt; null if it has no algorithm for one of the products. Bias, ReLU and
/// the gradient of the bias ride on the products where cuBLASLt can, else our kernels do them.
///
/// Numerics  sums in f32; f32 factors are not shortened; dw and db are f32. Every run takes the same algorithm.
std::unique_ptr<Plan> plan_cublaslt_linear(std::span<const NodeSpec> nodes, std::shared_ptr<CublasLt> cublas,
                                           const HelperKernels& helpers);

}  // namespace gradring::nn
