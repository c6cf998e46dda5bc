// SPDX-License-Identifier: Apache-2.0
#include "tests/kernels/simt/tile_kernels.h"

#include "kernels/lib/async_copy.h"
#include "kernels/simt/simt.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {
namespace {

namespace wmma = nvcuda::wmma;

template <int M, int N, class LayoutA, class LayoutB, class T, class C>
__global__ void multiply_tile_kernel(const T* a, const T* b, C* c) {
  constexpr int kInner = 16;
  wmma::fragment<wmma::matrix_a, M, N, kInner, T, LayoutA> a_tile;
  wmma::fragment<wmma::matrix_b, M, N, kInner, T, LayoutB> b_tile;
  wmma::fragment<wmma::accumulator, M, N, kInner, C> sum, product;
  wmma::load_matrix_sync(a_tile, a, std::is_same_v<LayoutA, wmma::row_major> ? kInner : M);
  wmma::load_matrix_sync(b_tile, b, std::is_same_v<LayoutB, wmma::row_major> ? N : kInner);
  wmma::load_matrix_sync(sum, c, N, wmma::mem_row_major);
  wmma::fill_fragment(product, static_cast<C>(0.0f));
  wmma::mma_sync(product, a_tile, b_tile, product);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = sum.x[i] + product.x[i];
  wmma::store_matrix_sync(c, sum, N, wmma::mem_row_major);
}

template <int M, int N>
void multiply(Stream& stream, Layout a_layout, Layout b_layout, const __half* a, const __half* b, float* c) {
  const simt::Config warp{.block = 32};
  using Row = wmma::row_major;
  using Col = wmma::col_major;
  if (a_layout == Layout::row_major && b_layout == Layout::row_major)
    simt::launch<multiply_tile_kernel<M, N, Row, Row, __half, float>>(stream, warp, a, b, c);
  else if (a_layout == Layout::row_major)
    simt::launch<multiply_tile_kernel<M, N, Row, Col, __half, float>>(stream, warp, a, b, c);
  else if (b_layout == Layout::row_major)
    simt::launch<multiply_tile_kernel<M, N, Col, Row, __half, float>>(stream, warp, a, b, c);
  else
    simt::launch<multiply_tile_kernel<M, N, Col, Col, __half, float>>(stream, warp, a, b, c);
}

template <bool Wait>
__global__ void staged_sum_kernel(const float4* quads, float* y, int tiles) {
  SIMT_SHARED(float4[2][64], stage);
  const unsigned thread = threadIdx.x;
  float sum = 0.0f;
  kernels::async_copy16(&stage[0][thread], &quads[thread]);
  kernels::async_commit();
  for (int tile = 0; tile < tiles; ++tile) {
    if (tile + 1 < tiles) kernels::async_copy16(&stage[(tile + 1) % 2][thread], &quads[(tile + 1) * 64 + thread]);
    kernels::async_commit();  // an empty group at the end keeps the count of groups even
    if (Wait) kernels::async_wait<1>();
    __syncthreads();  // other threads' copies have landed too
    sum += stage[tile % 2][63 - thread].x;
    __syncthreads();  // nobody still reads the buffer that the next round fills
  }
  y[thread] = sum;
}

}  // namespace

void multiply_tile(Stream& stream, int m, int n, Layout a_layout, Layout b_layout, const Half* a, const Half* b,
                   float* c) {
  const auto* x = reinterpret_cast<const __half*>(a);
  const auto* y = reinterpret_cast<const __half*>(b);
  if (m == 16 && n == 16)
    multiply<16, 16>(stream, a_layout, b_layout, x, y, c);
  else if (m == 32)
    multiply<32, 8>(stream, a_layout, b_layout, x, y, c);
  else
    multiply<8, 32>(stream, a_layout, b_layout, x, y, c);
}

void multiply_brain_tile(Stream& stream, const BFloat16* a, const BFloat16* b, float* c) {
  simt::launch<multiply_tile_kernel<16, 16, wmma::row_major, wmma::row_major, __nv_bfloat16, float>>(
      stream, {.block = 32}, reinterpret_cast<const __nv_bfloat16*>(a), reinterpret_cast<const __nv_bfloat16*>(b), c);
}

void multiply_half_tile(Stream& stream, const Half* a, const Half* b, Half* c) {
  simt::launch<multiply_tile_kernel<16, 16, wmma::row_major, wmma::row_major, __half, __half>>(
      stream, {.block = 32}, reinterpret_cast<const __half*>(a), reinterpret_cast<const __half*>(b),
      reinterpret_cast<__half*>(c));
}

void staged_sum(Stream& stream, const float* quads, float* y, int tiles, bool wait) {
  const auto* from = reinterpret_cast<const float4*>(quads);
  if (wait)
    simt::launch<staged_sum_kernel<true>>(stream, {.block = 64}, from, y, tiles);
  else
    simt::launch<staged_sum_kernel<false>>(stream, {.block = 64}, from, y, tiles);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
