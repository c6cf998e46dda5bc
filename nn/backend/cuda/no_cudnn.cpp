// SPDX-License-Identifier: Apache-2.0
#include "kernels/base/error.h"
#include "nn/backend/cuda/cuda_libraries.h"

namespace gradring::nn {

std::shared_ptr<Cudnn> open_cudnn(kernels::Device&, const CudaBackendOptions&) {
  throw DeviceError("this build has no cuDNN: install cuDNN 9 with its headers and build again");
}

std::unique_ptr<Plan> plan_cudnn_conv2d(std::span<const NodeSpec>, std::shared_ptr<Cudnn>, const HelperKernels&) {
  return nullptr;
}

EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn>, kernels::Device&, const kernels::conv2d::ForwardArgs&) { return {}; }
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn>, kernels::Device&, const kernels::conv2d::DgradArgs&) { return {}; }
EnqueuedPass cudnn_pass(std::shared_ptr<Cudnn>, kernels::Device&, const kernels::conv2d::WgradArgs&) { return {}; }

}  // namespace gradring::nn
