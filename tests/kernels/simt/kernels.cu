// SPDX-License-Identifier: Apache-2.0
// Correct kernels that use everything simt.h offers. The host compiler and nvcc both compile this file.
#include "tests/kernels/simt/kernels.h"

#include "kernels/lib/async_copy.h"
#include "kernels/simt/simt.h"

namespace gradring::simt_test {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr unsigned kFullMask = 0xffffffffu;

__device__ unsigned thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

__global__ void index_threads_kernel(std::int32_t* index) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned linear = block * blockDim.x * blockDim.y * blockDim.z + thread_number();
  index[linear] = static_cast<std::int32_t>(linear);
}

__global__ void count_visits_kernel(std::int32_t* visits, std::size_t count) {
  for (std::size_t i : simt::grid_range(count)) visits[i] += 1;
}

__global__ void count_block_visits_kernel(std::int32_t* visits, unsigned begin, unsigned end) {
  for (unsigned i : simt::block_range(begin, end)) atomicAdd(&visits[i], 1);
}

__global__ void axpy_wide_kernel(float a, const float* __restrict__ x, float* __restrict__ y, std::size_t quads) {
  for (std::size_t i : simt::grid_range(quads)) {
    const float4 from = simt::load_as<float4>(x + 4 * i);
    const float4 to = simt::load_as<float4>(y + 4 * i);
    simt::store_as<float4>(y + 4 * i,
                           make_float4(a * from.x + to.x, a * from.y + to.y, a * from.z + to.z, a * from.w + to.w));
  }
}

__global__ void evaluate_kernel(SIMT_GRID_CONST(Polynomial) polynomial, const float* x, float* y, std::size_t count) {
  for (std::size_t i : simt::grid_range(count)) {
    float value = 0.0f;
    for (int k = polynomial.degree; k >= 0; --k) value = value * x[i] + polynomial.coefficients[k];
    y[i] = value;
  }
}

constexpr unsigned kTile = 16;

__global__ void __launch_bounds__(kTile* kTile)
    transpose_kernel(const float* __restrict__ from, float* __restrict__ to, unsigned rows, unsigned columns) {
  SIMT_SHARED(float[kTile][kTile + 1], tile);
  const unsigned row = blockIdx.y * kTile + threadIdx.y;
  const unsigned column = blockIdx.x * kTile + threadIdx.x;
  if (row < rows && column < columns) tile[threadIdx.y][threadIdx.x] = from[row * columns + column];
  __syncthreads();  // the tile is read by other threads than wrote it
  const unsigned to_row = blockIdx.x * kTile + threadIdx.y;
  const unsigned to_column = blockIdx.y * kTile + threadIdx.x;
  if (to_row < columns && to_column < rows) to[to_row * rows + to_column] = tile[threadIdx.x][threadIdx.y];
}

__global__ void reverse_static_kernel(float* values) {
  __shared__ float piece[1024];
  float* mine = values + blockIdx.x * blockDim.x;
  piece[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();  // each thread reads what another one wrote
  mine[threadIdx.x] = piece[blockDim.x - 1 - threadIdx.x];
}

__global__ void reverse_dynamic_kernel(float* values) {
  SIMT_DYNAMIC_SHARED(float, piece);
  float* mine = values + blockIdx.x * blockDim.x;
  piece[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();  // each thread reads what another one wrote
  mine[threadIdx.x] = piece[blockDim.x - 1 - threadIdx.x];
}

__device__ float warp_sum(float value) {
  SIMT_UNROLL
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(kFullMask, value, distance);
  return value;
}

/// Thread 0 holds the result; blockDim.x is a multiple of 32.
__device__ float block_sum(float value) {
  SIMT_SHARED(float[32], partial);
  const unsigned lane = threadIdx.x % 32;
  const unsigned warp = threadIdx.x / 32;
  value = warp_sum(value);
  if (lane == 0) partial[warp] = value;
  __syncthreads();  // warp 0 reads all partial sums
  if (warp == 0) value = warp_sum(lane < blockDim.x / 32 ? partial[lane] : 0.0f);
  return value;
}

__global__ void sum_kernel(const float* __restrict__ x, std::size_t count, float* total) {
  float value = 0.0f;
  for (std::size_t i : simt::grid_range(count)) value += x[i];
  value = block_sum(value);
  if (threadIdx.x == 0) atomicAdd(total, value);
}

__global__ void block_votes_kernel(const std::int32_t* values, std::int32_t* out) {
  const int odd = values[threadIdx.x] % 2;
  const int count = __syncthreads_count(odd);
  const int all = __syncthreads_and(odd);
  const int any = __syncthreads_or(odd);
  if (threadIdx.x == 0) {
    out[0] = count;
    out[1] = all != 0;
    out[2] = any != 0;
  }
}

__global__ void touch_dynamic_shared_kernel(unsigned words, std::int32_t* ok) {
  SIMT_DYNAMIC_SHARED(unsigned, word);
  for (unsigned i : simt::block_range(0, words)) word[i] = i;
  __syncthreads();  // the last word was written by another thread
  if (threadIdx.x == 0) *ok = words == 0 || (word[0] == 0 && word[words - 1] == words - 1);
}

}  // namespace

void index_threads(Stream& stream, Extents grid, Extents block, std::int32_t* index, bool flat) {
  const simt::Config config{.grid = {grid.x, grid.y, grid.z}, .block = {block.x, block.y, block.z}};
  if (flat)
    simt::launch_flat<index_threads_kernel>(stream, config, index);
  else
    simt::launch<index_threads_kernel>(stream, config, index);
}

void count_visits(Stream& stream, unsigned blocks, unsigned threads, std::int32_t* visits, std::size_t count) {
  simt::launch_flat<count_visits_kernel>(stream, {.grid = blocks, .block = threads}, visits, count);
}

void count_visits_by_default(Stream& stream, std::int32_t* visits, std::size_t count) {
  simt::launch_flat<count_visits_kernel>(stream, simt::grid_for(stream, count), visits, count);
}

void count_block_visits(Stream& stream, unsigned blocks, unsigned threads, std::int32_t* visits, unsigned begin,
                        unsigned end) {
  simt::launch_flat<count_block_visits_kernel>(stream, {.grid = blocks, .block = threads}, visits, begin, end);
}

void axpy_wide(Stream& stream, float a, const float* x, float* y, std::size_t count) {
  simt::launch_flat<axpy_wide_kernel>(stream, simt::grid_for(stream, count / 4), a, x, y, count / 4);
}

void evaluate(Stream& stream, const Polynomial& polynomial, const float* x, float* y, std::size_t count) {
  simt::launch_flat<evaluate_kernel>(stream, {.grid = 3, .block = 32}, polynomial, x, y, count);
}

void transpose(Stream& stream, const float* from, float* to, unsigned rows, unsigned columns) {
  const dim3 grid((columns + kTile - 1) / kTile, (rows + kTile - 1) / kTile);
  simt::launch<transpose_kernel>(stream, {.grid = grid, .block = {kTile, kTile}}, from, to, rows, columns);
}

void reverse_pieces(Stream& stream, float* values, unsigned blocks, unsigned threads, bool dynamic) {
  simt::Config config{.grid = blocks, .block = threads};
  if (!dynamic) return simt::launch<reverse_static_kernel>(stream, config, values);
  config.shared_bytes = threads * sizeof(float);
  simt::launch<reverse_dynamic_kernel>(stream, config, values);
}

void sum(Stream& stream, unsigned blocks, unsigned threads, const float* x, std::size_t count, float* total) {
  simt::launch<sum_kernel>(stream, {.grid = blocks, .block = threads}, x, count, total);
}

void block_votes(Stream& stream, unsigned threads, const std::int32_t* values, std::int32_t* out) {
  simt::launch<block_votes_kernel>(stream, {.block = threads}, values, out);
}

void touch_dynamic_shared(Stream& stream, std::size_t bytes, std::int32_t* ok) {
  simt::launch<touch_dynamic_shared_kernel>(stream, {.block = 64, .shared_bytes = bytes},
                                            static_cast<unsigned>(bytes / sizeof(unsigned)), ok);
}

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

namespace {

__global__ void exercise_warps_kernel(WarpResults* results) {
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int mixed = (thread - 16) * (thread % 2 == 0 ? 1 : -1);
  WarpResults mine;
  mine.broadcast = __shfl_sync(kFullMask, thread, 3);
  mine.rotated = __shfl_sync(kFullMask, thread, lane + 1, 8);
  mine.butterfly = __shfl_xor_sync(kFullMask, thread, 5);
  mine.from_above = __shfl_down_sync(kFullMask, thread, 4, 16);
  mine.from_below = __shfl_up_sync(kFullMask, thread, 2);
  mine.wide = __shfl_xor_sync(kFullMask, thread + 0.25, 1);
  mine.odd_lanes = __ballot_sync(kFullMask, thread % 2);
  mine.any_is_7 = __any_sync(kFullMask, thread == 7) != 0;
  mine.all_below_64 = __all_sync(kFullMask, thread < 64) != 0;
  mine.equal_quarter = __match_any_sync(kFullMask, lane / 8);
  mine.sum = __reduce_add_sync(kFullMask, mixed);
  mine.least = __reduce_min_sync(kFullMask, mixed);
  mine.greatest = __reduce_max_sync(kFullMask, mixed);
  mine.bits_and = __reduce_and_sync(kFullMask, static_cast<unsigned>(thread) | 0x100u);
  mine.bits_or = __reduce_or_sync(kFullMask, static_cast<unsigned>(thread));
  mine.bits_xor = __reduce_xor_sync(kFullMask, static_cast<unsigned>(thread) * 3);
  results[thread] = mine;
}

__global__ void sum_halves_kernel(std::int32_t* out) {
  const unsigned half = threadIdx.x / 16;
  const unsigned mask = half == 0 ? 0x0000ffffu : 0xffff0000u;
  int value = static_cast<int>(threadIdx.x);
  for (unsigned round = 0; round <= half; ++round) __syncwarp(mask);  // the halves need not keep step
  for (int distance = 8; distance > 0; distance /= 2) value += __shfl_xor_sync(mask, value, distance);
  out[threadIdx.x] = value;
}

__global__ void sum_with_syncwarp_kernel(const float* x, float* total) {
  SIMT_SHARED(float[32], partial);
  const unsigned lane = threadIdx.x;
  partial[lane] = x[lane];
  __syncwarp();  // every lane's value is there
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    if (lane < distance) partial[lane] += partial[lane + distance];
    __syncwarp();  // the next round reads what this one wrote
  }
  if (lane == 0) *total = partial[0];
}

__global__ void ballot_in_short_warp_kernel(std::uint32_t* ballot) {
  const std::uint32_t lanes = __ballot_sync(kFullMask, 1);
  if (threadIdx.x == 0) *ballot = lanes;
}

}  // namespace

void exercise_warps(Stream& stream, unsigned threads, WarpResults* results) {
  simt::launch<exercise_warps_kernel>(stream, {.block = threads}, results);
}

void sum_halves(Stream& stream, std::int32_t* out) { simt::launch<sum_halves_kernel>(stream, {.block = 32}, out); }

void sum_with_syncwarp(Stream& stream, const float* x, float* total) {
  simt::launch<sum_with_syncwarp_kernel>(stream, {.block = 32}, x, total);
}

void ballot_in_short_warp(Stream& stream, unsigned threads, std::uint32_t* ballot) {
  simt::launch<ballot_in_short_warp_kernel>(stream, {.block = threads}, ballot);
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
