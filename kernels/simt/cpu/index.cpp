// SPDX-License-Identifier: Apache-2.0
#include "kernels/simt/cpu/index.h"

thread_local constinit uint3 threadIdx{0, 0, 0};
thread_local constinit uint3 blockIdx{0, 0, 0};
thread_local constinit uint3 blockDim{1, 1, 1};
thread_local constinit uint3 gridDim{1, 1, 1};

namespace gradring::simt::detail {
thread_local constinit unsigned char* dynamic_shared = nullptr;
thread_local constinit std::size_t dynamic_shared_bytes = 0;
}  // namespace gradring::simt::detail
