// SPDX-License-Identifier: Apache-2.0
// Correct kernels that use everything simt.h offers. The host compiler and nvcc both compile this file.
#include "tests/kernels/simt/kernels.h"

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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::simt_test
