// SPDX-License-Identifier: Apache-2.0
/// One kernel text for two compilers: nvcc compiles it for the GPU, the host compiler for the CPU, where kernels/simt
/// runs grid, block, warp, shared memory, barriers, shuffles, atomics and WMMA. A kernel includes this header and no
/// other of CUDA. Inside, everything is CUDA's own spelling (threadIdx, __syncthreads, __shfl_xor_sync, atomicAdd,
/// float4, __half, nvcuda::wmma), and:
///
///   SIMT_SHARED(float[8][33], tile)   __shared__ float tile[8][33]; on the CPU with redzones in ASan builds
///   SIMT_DYNAMIC_SHARED(float, rows)  extern __shared__ float rows[];
///   SIMT_GRID_CONST(Spec) spec        a parameter too big to copy for each thread
///   SIMT_UNROLL                       before a loop to unroll
///   SIMT_UNROLL_ON_GPU                the same where it only keeps arrays in registers, around what threads do
///                                     together; a CPU would gain nothing, and compile for minutes
///   simt::grid_range(n)               for (std::size_t i : simt::grid_range(n)): this thread's share of [0, n) in the
///                                     grid; strided on a GPU (coalesced), one contiguous run on a CPU (vectorised)
///   simt::block_range(begin, end)     the same within the block, unsigned
///   simt::load_as<uint4>(p), simt::store_as<uint4>(p, v)   wide access to narrower elements; p aligned for the wide
///   type
///
/// On the host, in the kernel's own .cu:
///
///   simt::launch<kernel>(stream, simt::Config{.grid = g, .block = b, .shared_bytes = s}, arguments...)
///   simt::launch_flat<kernel>(...)    for kernels without barriers and warp operations: plain loops on a CPU
///   simt::grid_for(stream, n)         a Config that suits grid_range(n)
///   simt::compute_capability(device)  90 for a GPU of compute capability 9.0; 0 for a CPU
///
/// Order     enqueued on `stream`; arguments are copied before launch returns.
/// Errors    simt::Error (CPU) or DeviceError (GPU). From launch, or from a later call where the stream is
///           asynchronous.
/// Cost      a grid without blocks costs nothing, and nothing is enqueued for it.
/// Example   tests/kernels/simt/kernels.cu
#pragma once

#ifdef __CUDACC__
#include "kernels/simt/on_cuda.h"
#else
// IWYU pragma: begin_exports
#include "kernels/simt/cpu/functions.h"
#include "kernels/simt/cpu/half.h"
#include "kernels/simt/cpu/index.h"
#include "kernels/simt/cpu/launch.h"
#include "kernels/simt/cpu/memory.h"
#include "kernels/simt/cpu/tensor_core.h"
#include "kernels/simt/cpu/warp_functions.h"
// IWYU pragma: end_exports
#endif
