// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gradring::kernels {

/// Whether this processor, and the operating system on it, run code compiled with -march=`name`: "x86-64-v2" to "x86-64-v4". Any
/// other name is taken to be this processor's own.
bool processor_has(std::string_view name);

}  // namespace gradring::kernels
