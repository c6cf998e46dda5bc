// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include "kernels/conv2d/conv2d.h"
#include "kernels/runtime/device.h"
#include "nn/backend/cuda/cudnn_conv2d.h"

namespace gradring::nn {

/// Enqueues one pass with fixed arguments.
using EnqueuedPass = std::function<void(kernels::Stream&)>;

/// A convolution's passes by cuDNN, one at a time and with nothing around them, for the contracts of kernels/conv2d. Empty if
/// cuDNN has no engine for it. `device` must outlive the pass.
///
/// Errors    CudnnError if it cannot be enqueued.
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device,
                        const kernels::conv2d::ForwardArgs& args);
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::DgradArgs& args);
/// Empty also where cuDNN gives dw in 16 bits alone: that is more rounding than the contract allows. Cannot accumulate.
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn> cudnn, kernels::Device& device, const kernels::conv2d::WgradArgs& args);

}  // namespace gradring::nn
