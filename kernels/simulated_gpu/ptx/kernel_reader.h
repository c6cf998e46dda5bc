// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "kernels/simulated_gpu/ptx/module.h"
#include "kernels/simulated_gpu/ptx/variables.h"

namespace gradring::ptx {

/// Reads a kernel, from its name at `begin` to the brace that ends it, before `end`.
///
/// Errors    PtxError
Kernel read_kernel(std::string_view module, std::size_t begin, std::size_t end, const ModuleVariables& variables);

}  // namespace gradring::ptx
