// SPDX-License-Identifier: Apache-2.0
// nvcuda::wmma for half and bfloat16 inputs. Lane l owns a run of elements of the row-major tile; the real mapping is
// unspecified, so portable code may only treat the elements of a fragment alike.
// kernels/lib/tensor_core.h on the CPU. Instrumented code: every lane reads its own elements from shared memory, so
// that TSan sees a row that another thread wrote without a barrier.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/simt/cpu/half.h"
#include "kernels/simt/cpu/warp_functions.h"
#include "kernels/simt/engine/cooperation.h"
#include "kernels/simt/engine/tensor_layout.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };

template <class Use, int M, int N, int K, class T, class Layout = void>
struct fragment {
  static_assert((M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16),
                "there are tiles of 16x16x16, 32x8x16 and 8x32x16");
  static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
  static constexpr int columns = std::is_same_v<Use, matrix_a> ? K : N;
  static constexpr int num_elements = rows * columns / 32;
  T x[num_elements];
};

template <class Use, int M, int N, int K, class T, class Layout, class Value>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& tile, const Value& value) {
  for (T& element : tile.x) element = static_cast<T>(value);
}

namespace detail {

using gradring::simt::Site;

/// Where the i-th element of the calling lane's part lies in memory.
template <class Fragment>
std::size_t offset(int i, unsigned leading_dimension, bool row_major) {
  const auto element = static_cast<unsigned>(gradring::simt::detail::lane_id() * Fragment::num_elements + i);
  const unsigned row = element / Fragment::columns;
  const unsigned column = element % Fragment::columns;
  return row_major ? std::size_t{row} * leading_dimension + column : std::size_t{column} * leading_dimension + row;
}

/// The documented requirements of loads and stores.
template <class T>
void check_tile(const T* address, unsigned leading_dimension, Site site) {
  if (reinterpret_cast<std::uintptr_t>(address) % 32 != 0)
    gradring::simt::detail::fail_kernel(site, "the address of a wmma tile is not a multiple of 32 bytes");
  if (leading_dimension * sizeof(T) % 16 != 0)
    gradring::simt::detail::fail_kernel(site, "the leading dimension of a wmma tile is not a multiple of 16 bytes");
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& tile, const T* from, unsigned leading_dimension,
                      detail::Site site = detail::Site::current()) {
  using Tile = fragment<Use, M, N, K, T, Layout>;
  detail::check_tile(from, leading_dimension, site);
  for (int i = 0; i < Tile::num_elements; ++i)
    tile.x[i] = from[detail::offset<Tile>(i, leading_dimension, std::is_same_v<Layout, row_major>)];
}

template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& tile, const T* from, unsigned leading_dimension,
                      layout_t layout, detail::Site site = detail::Site::current()) {
  using Tile = fragment<accumulator, M, N, K, T>;
  detail::check_tile(from, leading_dimension, site);
  for (int i = 0; i < Tile::num_elements; ++i)
    tile.x[i] = from[detail::offset<Tile>(i, leading_dimension, layout == mem_row_major)];
}

template <int M, int N, int K, class T>
void store_matrix_sync(T* to, const fragment<accumulator, M, N, K, T>& tile, unsigned leading_dimension,
                       layout_t layout, detail::Site site = detail::Site::current()) {
  using Tile = fragment<accumulator, M, N, K, T>;
  detail::check_tile(to, leading_dimension, site);
  for (int i = 0; i < Tile::num_elements; ++i)
    to[detail::offset<Tile>(i, leading_dimension, layout == mem_row_major)] = tile.x[i];
}

/// d = a b + c. The last lane to arrive multiplies for all, in float, in ascending order of K.
template <int M, int N, int K, class C, class T, class LayoutA, class LayoutB>
void mma_sync(fragment<accumulator, M, N, K, C>& d, const fragment<matrix_a, M, N, K, T, LayoutA>& a,
              const fragment<matrix_b, M, N, K, T, LayoutB>& b, const fragment<accumulator, M, N, K, C>& c,
              detail::Site site = detail::Site::current()) {
  constexpr int kA = fragment<matrix_a, M, N, K, T, LayoutA>::num_elements;
  constexpr int kB = fragment<matrix_b, M, N, K, T, LayoutB>::num_elements;
  constexpr int kC = fragment<accumulator, M, N, K, C>::num_elements;
  float as[kA], bs[kB], cs[kC];
  for (int i = 0; i < kA; ++i) as[i] = static_cast<float>(a.x[i]);
  for (int i = 0; i < kB; ++i) bs[i] = static_cast<float>(b.x[i]);
  for (int i = 0; i < kC; ++i) cs[i] = static_cast<float>(c.x[i]);
  gradring::simt::detail::MatrixMultiply part{gradring::simt::detail::Fragments::runs, M, N, K, as, bs, cs};
  gradring::simt::detail::warp_matrix_multiply("wmma::mma_sync", part, site);
  for (int i = 0; i < kC; ++i) d.x[i] = static_cast<C>(cs[i]);
}

}  // namespace nvcuda::wmma

namespace gradring::simt::detail {

/// ldmatrix: four matrices of 8 rows of 8 words of 16 bits; lane 8 i + r knows the address of row r of matrix i.
inline void load_matrices(const char* what, std::uint32_t (&registers)[4], const void* row, bool transpose, Site site) {
  const int lane = lane_id();
  const auto address = reinterpret_cast<std::uintptr_t>(row);
  if (address % 16 != 0) fail_kernel(site, "the address of a row of ldmatrix is not a multiple of 16 bytes");
  std::uint64_t rows[32];
  warp_gather(what, address, rows, site);
  const auto word = [&](int matrix, int row_of_matrix, int column) -> std::uint32_t {
    return reinterpret_cast<const std::uint16_t*>(rows[8 * matrix + row_of_matrix])[column];
  };
  const int outer = lane / 4, inner = lane % 4 * 2;
  for (int i = 0; i < 4; ++i)
    registers[i] = transpose ? word(i, inner, outer) | word(i, inner + 1, outer) << 16
                             : word(i, outer, inner) | word(i, outer, inner + 1) << 16;
}

/// mma.sync.m16n8k16 with inputs of type T: c += a b. The last lane to arrive multiplies for all.
template <class T>
void multiply_fragments(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1, Site site) {
  const auto half_of = [](std::uint32_t pair, int which) -> float {
    return T::from_bits(static_cast<std::uint16_t>(pair >> (16 * which)));
  };
  float as[8], bs[4];
  for (int i = 0; i < 8; ++i) as[i] = half_of(a[i / 2], i % 2);
  for (int i = 0; i < 4; ++i) bs[i] = half_of(i < 2 ? b0 : b1, i % 2);
  MatrixMultiply part{Fragments::mma, 16, 8, 16, as, bs, c};
  warp_matrix_multiply("mma.m16n8k16", part, site);
}

}  // namespace gradring::simt::detail
