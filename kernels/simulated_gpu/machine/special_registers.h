// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// %tid.x, %laneid, WARP_SZ, ...: how its value is found.
///
/// Errors    Unsupported if the name is not known.
SpecialRow special_register(std::string_view name);

/// The address of a parameter or variable in its own state space: a parameter's is that of the host, as its generic
/// one.
///
/// Errors    Unsupported if the kernel has none of this name.
SpecialRow address_of_symbol(const ptx::Kernel& kernel, std::string_view name);

}  // namespace gradring::simulated_gpu
