// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/simt/engine/error.h"
#include "kernels/simt/engine/tensor_layout.h"
#include "kernels/simt/simt.h"

#ifndef __CUDACC__
#include "kernels/simt/cpu/tensor_core.h"
#endif

/// The tensor cores one level below WMMA. A warp loads 8 x 8 matrices of 16-bit elements from shared memory (ldmatrix)
/// and multiplies fragments (mma.sync); every lane knows which elements it holds (simt/engine/tensor_layout.h), so that
/// what follows the product happens in registers.
///
/// A fragment of a, or two neighbouring ones of b, is one ldmatrix_x4 of 16 x 16 elements, in either layout:
///
///   fragment                       stored as             lane points at     load
///   a: 16 (M) x 16 (K)             K-major [row][k]      matrices_down      ldmatrix_x4        a[0..3]
///                                  M-major [k][row]      matrices_across    ldmatrix_x4_trans  a[0..3]
///   b: 16 (K) x 2 x 8 (N)          N-major [k][column]   matrices_down      ldmatrix_x4_trans  b[0, 1] and b[2, 3]
///                                  K-major [column][k]   matrices_across    ldmatrix_x4        b[0, 1] and b[2, 3]
///
/// `site` is the caller's source location, for messages; kernels do not pass it.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// Loads four 8 x 8 matrices. Lane 8 i + r points at row r of matrix i, 8 elements of 16 bits; register i of lane l
/// gets elements 2 (l % 4) and the next one, in its upper half, of row l / 4 of matrix i.
///
/// Aliasing  addresses in shared memory, multiples of 16.
/// Order     as a read by each lane of what it gets: what other threads wrote needs a __syncwarp or __syncthreads
///           before.
/// Threads   the whole warp.
/// Errors    on the CPU simt::Error if an address is not a multiple of 16 or a lane is missing.
/// Source    PTX ISA, ldmatrix (compute capability 7.5 and later).
/// Example   tests/kernels/lib/tensor_core_test.cpp
__device__ inline void ldmatrix_x4(std::uint32_t (&to)[4], const void* row,
                                   [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  simt::detail::load_matrices("ldmatrix_x4", to, row, false, site);
#endif
}

/// The same with each matrix transposed: register i of lane l gets the elements of rows 2 (l % 4) and the next one in
/// column l / 4 of matrix i.
__device__ inline void ldmatrix_x4_trans(std::uint32_t (&to)[4], const void* row,
                                         [[maybe_unused]] simt::Site site = simt::Site::current()) {
#ifdef __CUDACC__
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
#else
  simt::detail::load_matrices("ldmatrix_x4_trans", to, row, true, site);
#endif
}

/// A lane's row of matrices in shared memory, aligned to 16 bytes, for loops whose offsets are known to the compiler:
/// they are part of the instruction, and cost none.
class MatrixRow {
 public:
  __device__ explicit MatrixRow(const void* row) : row_(address_of(row)) {}

  __device__ friend MatrixRow operator+(MatrixRow row, int bytes) {
    row.row_ += bytes;
    return row;
  }

  /// As ldmatrix_x4, of the row kBytes after this one.
  template <int kBytes>
  __device__ void load(std::uint32_t (&to)[4], [[maybe_unused]] simt::Site site = simt::Site::current()) const {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4+%5];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row_), "n"(kBytes)
                 : "memory");
#else
    simt::detail::load_matrices("MatrixRow::load", to, row_ + kBytes, false, site);
#endif
  }

  /// As ldmatrix_x4_trans, of the same.
  template <int kBytes>
  __device__ void load_trans(std::uint32_t (&to)[4], [[maybe_unused]] simt::Site site = simt::Site::current()) const {
#ifdef __CUDACC__
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4+%5];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row_), "n"(kBytes)
                 : "memory");
#else
    simt::detail::load_matrices("MatrixRow::load_trans", to, row_ + kBytes, true, site);
#endif
  }

  /// Eight elements to the row kBytes after this one.
  template <int kBytes>
  __device__ void store(const uint4& elements) const {
#ifdef __CUDACC__
    asm volatile("st.shared.v4.b32 [%0+%1], {%2, %3, %4, %5};" ::"r"(row_), "n"(kBytes), "r"(elements.x),
                 "r"(elements.y), "r"(elements.z), "r"(elements.w)
                 : "memory");
#else
    simt::store_as(const_cast<char*>(row_) + kBytes, elements);
#endif
  }

 private:
#ifdef __CUDACC__
  using Address = std::uint32_t;  // in shared memory
  __device__ static Address address_of(const void* row) { return static_cast<Address>(__cvta_generic_to_shared(row)); }
#else
  using Address = const char*;
  static Address address_of(const void* row) { return static_cast<Address>(row); }
#endif

  Address row_;
};

/// d = a b + c for one fragment each: a [16, 16], b [16, 8], c and d [16, 8]; T is __half or __nv_bfloat16, sums are in
/// float.
///
/// Shapes    which elements a lane holds: simt/engine/tensor_layout.h. (b0, b1): the two registers of a fragment of b.
/// Aliasing  d may be c.
/// Threads   the whole warp.
/// Errors    on the CPU simt::Error if a lane is missing.
/// Numerics  a GPU's order of additions, and how it aligns their terms, are not documented; on the CPU ascending.
/// Cost      4,096 floating-point operations.
/// Source    PTX ISA, mma (compute capability 8.0 and later).
/// Example   tests/kernels/lib/tensor_core_test.cpp
template <class T>
__device__ inline void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                    const float (&c)[4], [[maybe_unused]] simt::Site site = simt::Site::current()) {
  static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>);
#ifdef __CUDACC__
  if constexpr (std::is_same_v<T, __half>)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, "
        "%11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, "
        "%11, %12, %13};"
        : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
#else
  float sums[4] = {c[0], c[1], c[2], c[3]};
  simt::detail::multiply_fragments<T>(sums, a, b0, b1, site);
  for (int i = 0; i < 4; ++i) d[i] = sums[i];
#endif
}

/// c += a b.
template <class T>
__device__ inline void mma_m16n8k16(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                    simt::Site site = simt::Site::current()) {
  mma_m16n8k16<T>(c, a, b0, b1, c, site);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
