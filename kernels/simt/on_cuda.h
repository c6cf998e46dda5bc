// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for nvcc: thin wrappers over the runtime; included by kernels/simt/simt.h only. The inline namespace keeps
// these functions apart from those of the CPU when both are in one process.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <mma.h>

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "kernels/runtime/cuda/cuda_device.h"
#include "kernels/runtime/cuda/cuda_error.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"
#include "kernels/simt/engine/kernel_name.h"
#include "kernels/simt/engine/range.h"

#define SIMT_DYNAMIC_SHARED(Type, name)                                  \
  extern __shared__ __align__(128) unsigned char simt_dynamic_shared_[]; \
  Type* const name = reinterpret_cast<Type*>(simt_dynamic_shared_)
#define SIMT_SHARED(Type, name) __shared__ __align__(128) std::type_identity_t<Type> name
#define SIMT_GRID_CONST(Type) const __grid_constant__ Type
#define SIMT_UNROLL _Pragma("unroll")
#define SIMT_UNROLL_ON_GPU SIMT_UNROLL

namespace gradring::simt {
inline namespace on_cuda {

struct Config {
  dim3 grid{1};
  dim3 block{1};
  std::size_t shared_bytes = 0;
};

/// 90 for 9.0.
inline int compute_capability(const kernels::Device& device) {
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    kernels::cuda_check(cudaDeviceGetAttribute(&value, which, device.id().index), "cudaDeviceGetAttribute");
    return value;
  };
  return attribute(cudaDevAttrComputeCapabilityMajor) * 10 + attribute(cudaDevAttrComputeCapabilityMinor);
}

inline std::size_t count_of(const dim3& extents) { return std::size_t{extents.x} * extents.y * extents.z; }

/// What a launch on the current device took of it.
template <auto Kernel>
void tell(kernels::LaunchObserver& observer, const Config& config) {
  const std::size_t threads = count_of(config.block);
  observer.launched(
      {.kernel = kernel_name<Kernel>(),
       .blocks = count_of(config.grid),
       .threads = threads,
       .dynamic_shared_bytes = config.shared_bytes,
       .resources = kernels::launch_resources(reinterpret_cast<const void*>(Kernel), threads, config.shared_bytes)});
}

/// A static, as the limit is CUDA's state of the kernel, which every launch in the process shares.
template <auto Kernel>
kernels::SharedMemoryLimit& shared_memory_limit() {
  static kernels::SharedMemoryLimit limit(reinterpret_cast<const void*>(Kernel));
  return limit;
}

template <auto Kernel, class... Arguments>
void launch(kernels::Stream& stream, const Config& config, Arguments&&... arguments) {
  if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0) return;
  kernels::make_current(stream.device_index());  // CUDA launches on a stream of the thread's device only
  if (config.shared_bytes > 0) shared_memory_limit<Kernel>().raise_to(config.shared_bytes, stream.device_index());
  cudaLaunchConfig_t launch_config{};
  launch_config.gridDim = config.grid;
  launch_config.blockDim = config.block;
  launch_config.dynamicSmemBytes = config.shared_bytes;
  launch_config.stream = static_cast<cudaStream_t>(stream.native_handle());
  kernels::cuda_check(cudaLaunchKernelEx(&launch_config, Kernel, std::forward<Arguments>(arguments)...),
                      "the launch of a kernel");
  if (kernels::LaunchObserver* observer = stream.launch_observer()) [[unlikely]]
    tell<Kernel>(*observer, config);
}

template <auto Kernel, class... Arguments>
void launch_flat(kernels::Stream& stream, const Config& config, Arguments&&... arguments) {
  launch<Kernel>(stream, config, std::forward<Arguments>(arguments)...);
}

/// Blocks of 256 threads, as many as the device holds at once, twice; each thread strides over the rest.
inline Config grid_for(kernels::Stream& stream, std::size_t elements) {
  constexpr std::size_t kThreads = 256;
  constexpr std::size_t kBlocksPerProcessor = 16;
  int processors = 1;
  kernels::cuda_check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, stream.device_index()),
                      "cudaDeviceGetAttribute");
  const std::size_t useful = (elements + kThreads - 1) / kThreads;
  const std::size_t most = static_cast<std::size_t>(processors) * kBlocksPerProcessor;
  return {.grid = dim3(static_cast<unsigned>(std::min(useful, most))), .block = dim3(kThreads)};
}

/// Neighbouring threads take neighbouring indices, so that a warp's accesses coalesce.
__device__ inline Range<std::size_t> grid_range(std::size_t count) {
  const std::size_t per_block = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  const std::size_t in_block =
      threadIdx.x + std::size_t{blockDim.x} * (threadIdx.y + std::size_t{blockDim.y} * threadIdx.z);
  const std::size_t block = blockIdx.x + std::size_t{gridDim.x} * (blockIdx.y + std::size_t{gridDim.y} * blockIdx.z);
  const std::size_t blocks = std::size_t{gridDim.x} * gridDim.y * gridDim.z;
  return {block * per_block + in_block, count, blocks * per_block};
}

__device__ inline Range<unsigned> block_range(unsigned begin, unsigned end) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return {begin + thread, end, threads};
}

template <class Wide, class T>
__device__ inline Wide load_as(const T* address) {
  return *reinterpret_cast<const Wide*>(address);
}

template <class Wide, class T>
__device__ inline void store_as(T* address, const Wide& value) {
  *reinterpret_cast<Wide*>(address) = value;
}

}  // namespace on_cuda
}  // namespace gradring::simt
