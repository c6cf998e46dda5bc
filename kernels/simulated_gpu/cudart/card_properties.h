// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "kernels/simulated_gpu/cudart/device.h"

namespace gradring::simulated_gpu {

/// What follows from the card, and what the simulation can do. Of textures there is nothing but alignments.
cudaDeviceProp properties_of(const Device& device);
/// Nothing for an attribute that is not known here.
std::optional<int> attribute_of(const Device& device, cudaDeviceAttr attribute);

}  // namespace gradring::simulated_gpu
