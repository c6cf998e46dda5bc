// SPDX-License-Identifier: Apache-2.0
// Where a thread stands in its grid. The engine sets these on the OS thread that runs a block; a block never moves to another.
#pragma once

#include <cstddef>

#include "kernels/simt/cpu/vector_types.h"

// local-exec: one instruction to read, nothing for the linker to relax. The engine is linked into programs only, never into a
// shared library.
#define SIMT_THREAD_STATE extern thread_local constinit __attribute__((tls_model("local-exec")))
SIMT_THREAD_STATE uint3 threadIdx;
SIMT_THREAD_STATE uint3 blockIdx;
SIMT_THREAD_STATE uint3 blockDim;
SIMT_THREAD_STATE uint3 gridDim;
inline constexpr int warpSize = 32;

namespace gradring::simt::detail {
SIMT_THREAD_STATE unsigned char* dynamic_shared;
SIMT_THREAD_STATE std::size_t dynamic_shared_bytes;
}  // namespace gradring::simt::detail
#undef SIMT_THREAD_STATE
