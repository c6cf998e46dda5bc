// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "nn/backend/backend.h"
#include "nn/backend/cuda/cuda_backend_options.h"
#include "nn/backend/cuda/helper_kernels.h"

namespace gradring::nn {

/// cuDNN on one device (cudnn.h); nothing where this build has none (no_cudnn.cpp).
class Cudnn;

/// Opens cuDNN on a device, for plans to share.
///
/// Errors    DeviceError if it is not there, or does not start: says what to install.
std::shared_ptr<Cudnn> open_cudnn(kernels::Device& device, const CudaBackendOptions& options);

/// A convolution with its bias, and a ReLU right behind it, by cuDNN; null if cuDNN has no engine for one of the passes.
/// Where it has none that adds bias and ReLU itself, our kernels do. The plan's gradient of the weights is f32; if cuDNN gives
/// it in the type of the activations alone, it is converted.
///
/// Numerics  sums in f32; f32 factors are not shortened. As reproducible as the options ask for.
std::unique_ptr<Plan> plan_cudnn_conv2d(std::span<const NodeSpec> nodes, std::shared_ptr<Cudnn> cudnn,
                                        const HelperKernels& helpers);

}  // namespace gradring::nn
