// SPDX-License-Identifier: Apache-2.0
// CUDA's keywords for a C++ compiler.
#pragma once

#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

/// A parameter that is too big to copy for each thread.
#define SIMT_GRID_CONST(Type) const Type&

#ifdef __clang__
#define SIMT_UNROLL _Pragma("unroll")
#else
#define SIMT_UNROLL _Pragma("GCC unroll 16")
#endif
#define SIMT_UNROLL_ON_GPU
