// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/device.h"

namespace gradring::nn {

/// Makes `device` the one that this thread's calls of NVIDIA's libraries are for. A CPU, which tests put in a GPU's place,
/// needs nothing.
inline void make_current(const kernels::Device& device) {
  if (device.id().kind == kernels::DeviceKind::cuda) kernels::make_current(device.id().index);
}

}  // namespace gradring::nn
