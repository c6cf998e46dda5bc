// SPDX-License-Identifier: Apache-2.0
// CUDA's vector types with their alignments, its keywords, and the indices of a thread: the engine sets them on the OS
// thread that runs a block, and a block never moves to another. In a range each thread takes one contiguous run, which
// vectorises.
#pragma once

#include <cstddef>

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

// clang-format off
#define SIMT_VECTOR(Element, name)                                                                                   \
  struct name##1 { Element x; };                                                                                     \
  struct alignas(sizeof(Element) * 2) name##2 { Element x, y; };                                                     \
  struct name##3 { Element x, y, z; };                                                                               \
  struct alignas(sizeof(Element) * 4 < 16 ? sizeof(Element) * 4 : 16) name##4 { Element x, y, z, w; };               \
  constexpr name##1 make_##name##1(Element x) { return {x}; }                                                        \
  constexpr name##2 make_##name##2(Element x, Element y) { return {x, y}; }                                          \
  constexpr name##3 make_##name##3(Element x, Element y, Element z) { return {x, y, z}; }                            \
  constexpr name##4 make_##name##4(Element x, Element y, Element z, Element w) { return {x, y, z, w}; }
// clang-format on
SIMT_VECTOR(float, float)
SIMT_VECTOR(unsigned, uint)
#undef SIMT_VECTOR

#define __global__
#define __device__
#define __host__
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

#include "kernels/simt/engine/range.h"  // in these keywords

// local-exec: one instruction to read, nothing for the linker to relax. The engine is linked into programs only, never
// into a shared library.
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

namespace gradring::simt {
namespace detail {

/// The share of thread `thread` of `threads` in [begin, end).
template <class Index>
Range<Index> run_of(Index begin, Index end, Index thread, Index threads) {
  const Index count = end > begin ? end - begin : 0;
  const Index each = count / threads + (count % threads != 0 ? 1 : 0);
  const Index first = each == 0 || thread < count / each + 1 ? begin + thread * each : end;
  const Index from = first < end ? first : end;
  const Index to = end - from > each ? from + each : end;
  return {from, to, 1};
}

}  // namespace detail

inline Range<std::size_t> grid_range(std::size_t count) {
  const std::size_t per_block = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  const std::size_t in_block =
      threadIdx.x + std::size_t{blockDim.x} * (threadIdx.y + std::size_t{blockDim.y} * threadIdx.z);
  const std::size_t block = blockIdx.x + std::size_t{gridDim.x} * (blockIdx.y + std::size_t{gridDim.y} * blockIdx.z);
  const std::size_t blocks = std::size_t{gridDim.x} * gridDim.y * gridDim.z;
  return detail::run_of<std::size_t>(0, count, block * per_block + in_block, blocks * per_block);
}

inline Range<unsigned> block_range(unsigned begin, unsigned end) {
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return detail::run_of<unsigned>(begin, end, thread, threads);
}

}  // namespace gradring::simt
