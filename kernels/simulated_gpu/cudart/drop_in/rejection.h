// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::simulated_gpu {

/// Reports a function that is not simulated; returns cudaErrorNotSupported.
int rejected(const char* name);

}  // namespace gradring::simulated_gpu
