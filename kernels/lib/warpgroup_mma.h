// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

#ifndef __CUDACC__
#include "kernels/simt/cpu/hopper.h"
#endif

/// The tensor cores of sm_90a: four warps, a warpgroup, multiply operands that lie in shared memory; only the sums are
/// in registers. Products run while the warps do something else:
///
///   warpgroup_expose(sums);                               once: what is written to the sums so far, comes before
///   warpgroup_fence();                                    the sums are the products' now
///   warpgroup_mma_m64k16<T, ...>(sums, a, b);  ...        any number of them, on the same sums
///   warpgroup_commit();                                   closes a group
///   warpgroup_wait<1>();                                  all groups but the newest are done: what they read is free
///   warpgroup_wait_for(sums);                             all are done, and the sums are the program's again
///
/// Threads   all 128 threads of warps 4 g to 4 g + 3, in step.
/// Errors    on the CPU simt::Error: an operand outside of dynamic shared memory, or not aligned to its pattern; a
///           product without the fence; a warpgroup that is not full. Products land in the wait, so that a missing one
///           shows.
/// Source    PTX ISA, wgmma (sm_90a alone).
/// Example   tests/kernels/lib/tensor_core_test.cpp
///
/// `site` is the caller's source location, for messages; kernels do not pass it.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Which of its block's warpgroups a thread is in. The same number in all lanes, which nvcc sees by the shuffle: what
/// follows from it, as the descriptors of a warpgroup, stays in uniform registers, where products take it from.
__device__ inline int warpgroup_index() { return __shfl_sync(~0u, static_cast<int>(threadIdx.x) / 128, 0); }

/// An address in shared memory as descriptors count it.
__device__ inline std::uint32_t shared_address(const void* pointer) {
#ifdef __CUDACC__
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
#else
  return simt::detail::shared_address(pointer);
#endif
}

/// The first multiple of kAlignment in `memory`, which has kAlignment - 1 bytes to spare.
template <unsigned kAlignment>
__device__ inline unsigned char* align_shared(unsigned char* memory) {
  return memory + (kAlignment - shared_address(memory) % kAlignment) % kAlignment;
}

/// Shows products what this thread wrote to shared memory by itself; then __syncthreads by all. What TMA copied there
/// needs no such call.
__device__ inline void warpgroup_publish() {
#ifdef __CUDACC__
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/// Before the first fence: the compiler does not move what is written to the sums behind it. By index: nvcc unrolls a
/// loop over references too late, keeps the sums in memory, and wgmma waits for each.
template <int kCount>
__device__ inline void warpgroup_expose([[maybe_unused]] float (&sums)[kCount]) {
#ifdef __CUDACC__
  SIMT_UNROLL
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(sums[i])::"memory");
#endif
}

__device__ inline void warpgroup_fence([[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#else
  simt::detail::begin_products(site);
#endif
}

__device__ inline void warpgroup_commit([[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#else
  simt::detail::commit_products(site);
#endif
}

/// Waits until at most kPending of the newest groups are still on their way.
template <int kPending>
__device__ inline void warpgroup_wait([[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#else
  simt::detail::wait_for_products(kPending, site);
#endif
}

/// Waits for all groups.
template <int kCount>
__device__ inline void warpgroup_wait_for([[maybe_unused]] float (&sums)[kCount],
                                          simt::Site site = simt::Site::current()) {
  warpgroup_wait<0>(site);
#ifdef __CUDACC__
  SIMT_UNROLL
  for (int i = 0; i < kCount; ++i)
    asm volatile("" : "+f"(sums[i])::"memory");  // nothing made of a sum moves before the wait
#endif
}

/// How many sums of 64 x kColumns a thread has.
template <int kColumns>
inline constexpr int kSumsOf64 = kColumns / 2;

#ifdef __CUDACC__
#define GRADRING_WGMMA_M64N8K16(type)                                     \
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32." type "." type \
               " {"                                                       \
               "%0, %1, %2, %3}, %4, %5, 1, 1, 1, %6, %7; "               \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])           \
               : "l"(a.bits), "l"(b.bits), "n"(kTransposeA ? 1 : 0), "n"(kTransposeB ? 1 : 0))
#define GRADRING_WGMMA_M64N32K16(type)                                                                                \
  asm volatile("wgmma.mma_async.sync.aligned.m64n32k16.f32." type "." type                                            \
               " {"                                                                                                   \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, %16, %17, 1, 1, 1, %18, %19; " \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),      \
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]) \
               : "l"(a.bits), "l"(b.bits), "n"(kTransposeA ? 1 : 0), "n"(kTransposeB ? 1 : 0))
#define GRADRING_WGMMA_M64N64K16(type)                                                                                 \
  asm volatile(                                                                                                        \
      "wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type                                                      \
      " {"                                                                                                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, 1, 1, 1, %34, %35; " \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),    \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),         \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),        \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])                      \
      : "l"(a.bits), "l"(b.bits), "n"(kTransposeA ? 1 : 0), "n"(kTransposeB ? 1 : 0))
#define GRADRING_WGMMA_M64N128K16(type)                                                                                \
  asm volatile(                                                                                                        \
      "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type                                                     \
      " {"                                                                                                             \
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                         \
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                               \
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                               \
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1, 1, 1, %66, %67; " \
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]),    \
        "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]),         \
        "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]),        \
        "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]),        \
        "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]),        \
        "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]),        \
        "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]),        \
        "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])                      \
      : "l"(a.bits), "l"(b.bits), "n"(kTransposeA ? 1 : 0), "n"(kTransposeB ? 1 : 0))
#endif

/// Starts d += a b: a [64, 16], b [16, kColumns] with 8, 32, 64 or 128 columns; T is __half or __nv_bfloat16, sums are
/// in float.
///
/// Shapes    which sums a thread holds: simt::warpgroup_position_in_d. Operands: simt::MatrixDescriptor; kTransposeA:
///           a is M-major; kTransposeB: b is N-major.
/// Numerics  a GPU's order of additions, and how it aligns their terms, are not documented; on the CPU ascending.
/// Cost      2,048 floating-point operations a column; of 128 columns 262,144, for 6 KB read of shared memory.
template <class T, bool kTransposeA, bool kTransposeB, int kSums>
__device__ inline void warpgroup_mma_m64k16(float (&d)[kSums], simt::MatrixDescriptor a, simt::MatrixDescriptor b,
                                            [[maybe_unused]] simt::Site site = simt::Site::current()) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
  static_assert(kSums == kSumsOf64<8> || kSums == kSumsOf64<32> || kSums == kSumsOf64<64> || kSums == kSumsOf64<128>);
#ifdef __CUDACC__
  constexpr bool kIsHalf = std::is_same_v<T, __half>;
  if constexpr (kSums == kSumsOf64<8> && kIsHalf)
    GRADRING_WGMMA_M64N8K16("f16");
  else if constexpr (kSums == kSumsOf64<8>)
    GRADRING_WGMMA_M64N8K16("bf16");
  else if constexpr (kSums == kSumsOf64<32> && kIsHalf)
    GRADRING_WGMMA_M64N32K16("f16");
  else if constexpr (kSums == kSumsOf64<32>)
    GRADRING_WGMMA_M64N32K16("bf16");
  else if constexpr (kSums == kSumsOf64<64> && kIsHalf)
    GRADRING_WGMMA_M64N64K16("f16");
  else if constexpr (kSums == kSumsOf64<64>)
    GRADRING_WGMMA_M64N64K16("bf16");
  else if constexpr (kIsHalf)
    GRADRING_WGMMA_M64N128K16("f16");
  else
    GRADRING_WGMMA_M64N128K16("bf16");
#else
  simt::detail::start_product(
      {simt::detail::add_product<T, 2 * kSums, kTransposeA, kTransposeB>, d, a.bits, b.bits, site});
#endif
}

#undef GRADRING_WGMMA_M64N8K16
#undef GRADRING_WGMMA_M64N32K16
#undef GRADRING_WGMMA_M64N64K16
#undef GRADRING_WGMMA_M64N128K16

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
