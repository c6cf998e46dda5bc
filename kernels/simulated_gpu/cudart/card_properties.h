// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <optional>

#include "kernels/simulated_gpu/counters/card.h"

namespace gradring::simulated_gpu {

/// `number`: of the GPU in its machine.
cudaDeviceProp properties_of(const Card& card, int number);
/// Nothing for an attribute that is not simulated.
std::optional<int> attribute_of(const Card& card, cudaDeviceAttr attribute);

}  // namespace gradring::simulated_gpu
