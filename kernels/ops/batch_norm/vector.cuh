// SPDX-License-Identifier: Apache-2.0
// What the passes of the variant 'vector' share: how a matrix is cut into blocks, vectors of 16 bytes, and sums over the
// rows of a block and over slices of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/batch_norm/per_channel.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {

constexpr int kVectorThreads = 256;
constexpr int kVectorBytes = 16;
constexpr int kTileBytes = 512;     // of a row, at most: what a warp loads at once
constexpr int kTileChannels = 256;  // at most, then
constexpr int kChunk = 8;           // rows of a slice are a multiple of kChunk * Tiling::rows
constexpr int kMostBlocks = 512;    // of a sum: four for each multiprocessor of a large GPU

/// For how many blocks a multiprocessor must have registers; 0: ptxas decides. By itself it takes so few for 16 bits that
/// it spills.
template <int kWidth>
constexpr int kResidentBlocks = kWidth > 4 ? 2 : 0;

/// A block has `vectors` x `rows` threads: so many vectors of kWidth channels, of so many rows at once. A sum also cuts
/// the rows into slices, by the shape alone.
struct Tiling {
  unsigned vectors, rows, tiles, slices;
  std::int64_t rows_of_slice;

  Tiling(std::int64_t all_rows, std::int64_t channels, int width, std::size_t element_bytes) {
    const std::int64_t all = lib::ceil_div(channels, width);
    const std::int64_t most = kTileBytes / (width * static_cast<std::int64_t>(element_bytes));
    tiles = static_cast<unsigned>(lib::ceil_div(all, most));
    vectors = static_cast<unsigned>(lib::ceil_div(all, tiles));  // tiles of nearly the same width
    rows = kVectorThreads / vectors;
    const std::int64_t step = std::int64_t{kChunk} * rows;
    rows_of_slice = lib::ceil_div(lib::ceil_div(all_rows, most_slices(all_rows)), step) * step;
    slices = rows_of_slice == 0 ? 1 : static_cast<unsigned>(lib::ceil_div(all_rows, rows_of_slice));
  }
  /// Never less for more rows.
  std::int64_t most_slices(std::int64_t all_rows) const {
    const std::int64_t wanted = std::max<std::int64_t>(kMostBlocks / tiles, 1);
    return std::clamp<std::int64_t>(lib::ceil_div(all_rows, std::int64_t{kChunk} * rows), 1, wanted);
  }
  simt::Config config(unsigned blocks) const { return {.grid = dim3(blocks, tiles), .block = dim3(vectors, rows)}; }
  /// For a loop over all elements, without sums.
  simt::Config config_for_elements(Stream& stream, std::int64_t all_rows) const {
    const std::int64_t threads = lib::ceil_div(all_rows, 4) * vectors * tiles;
    const unsigned blocks = simt::grid_for(stream, static_cast<std::size_t>(threads)).grid.x / tiles;
    return config(std::max(blocks, 1u));
  }
};

/// Whether 16-byte vectors may start at each of these arrays and at each row. Null is never read.
template <class T>
bool has_vectors(std::int64_t channels, std::initializer_list<const void*> arrays) {
  if (channels * static_cast<std::int64_t>(sizeof(T)) % kVectorBytes != 0) return false;
  return std::ranges::all_of(
      arrays, [](const void* array) { return reinterpret_cast<std::uintptr_t>(array) % kVectorBytes == 0; });
}

/// Calls visit(width) with the channels of a vector as a std::integral_constant.
template <class T, class Visit>
void with_width(bool vectors, Visit visit) {
  if (vectors)
    visit(std::integral_constant<int, kVectorBytes / sizeof(T)>());
  else
    visit(std::integral_constant<int, 1>());
}

/// Neighbouring channels of a row, which one instruction moves.
template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Vector {
  T values[kWidth];

  __device__ float operator[](int j) const { return lib::to_f32(values[j]); }
  __device__ void set(int j, float value) { values[j] = lib::from_f32<T>(value); }
};

template <class T, int kWidth>
__device__ inline Vector<T, kWidth> load_vector(const void* array, std::int64_t at) {
  return simt::load_as<Vector<T, kWidth>>(static_cast<const T*>(array) + at);
}

template <class T, int kWidth>
__device__ inline void store_vector(void* array, std::int64_t at, const Vector<T, kWidth>& vector) {
  simt::store_as<Vector<T, kWidth>>(static_cast<T*>(array) + at, vector);
}

/// The channels of this block: `count` of them from `first` on; and the place of this thread's vector among them.
template <int kWidth>
struct TileOfBlock {
  int first, count, mine;

  __device__ explicit TileOfBlock(int channels)
      : first(static_cast<int>(blockIdx.y * blockDim.x) * kWidth), mine(static_cast<int>(threadIdx.x) * kWidth) {
    const int width = static_cast<int>(blockDim.x) * kWidth;
    count = channels - first < width ? channels - first : width;
  }
  __device__ bool has_mine() const { return mine < count; }
  /// Calls visit(i) for the channels first + i, each in one thread; neighbours in neighbouring threads.
  template <class Visit>
  __device__ void for_each_channel(Visit visit) const {
    const int thread = static_cast<int>(threadIdx.y * blockDim.x + threadIdx.x);
    for (int i = thread; i < count; i += static_cast<int>(blockDim.x * blockDim.y)) visit(i);
  }
};

/// Rows of the slice of this block.
struct SliceOfBlock {
  std::int64_t begin, end;

  __device__ SliceOfBlock(std::int64_t rows, std::int64_t rows_of_slice) : begin(blockIdx.x * rows_of_slice) {
    end = rows - begin < rows_of_slice ? rows : begin + rows_of_slice;
  }
};

/// Merges `mine` of all threads of a column of the block into that of its first row: pairs of rows that are half of the
/// rows apart, then a quarter, and so on. Partial: float values[kFloats], merge(const Partial&).
template <class Partial>
__device__ inline void merge_rows(Partial& mine) {
  using Table = float[Partial::kFloats][kVectorThreads / 2];
  SIMT_SHARED(Table, table);
  const unsigned row = threadIdx.y;
  unsigned half = 1;
  while (2 * half < blockDim.y) half *= 2;
  for (; half > 0; half /= 2) {
    if (row >= half && row < 2 * half)
      for (int i = 0; i < Partial::kFloats; ++i) table[i][(row - half) * blockDim.x + threadIdx.x] = mine.values[i];
    __syncthreads();  // the upper half has written
    if (row < half && row + half < blockDim.y) {
      Partial other;
      for (int i = 0; i < Partial::kFloats; ++i) other.values[i] = table[i][row * blockDim.x + threadIdx.x];
      mine.merge(other);
    }
    __syncthreads();  // the lower half has read
  }
}

/// Stores two numbers a channel, values[j] and values[kWidth + j] of each thread of the first row, as
/// to[2][channels]: by way of shared memory, so that neighbouring threads store neighbours.
template <int kWidth, class Partial>
__device__ inline void store_partials(const TileOfBlock<kWidth>& tile, const Partial& mine, float* to, int channels) {
  using Table = float[2][kTileChannels];
  SIMT_SHARED(Table, table);
  if (threadIdx.y == 0)
    for (int i = 0; i < 2 * kWidth; ++i) table[i / kWidth][tile.mine + i % kWidth] = mine.values[i];
  __syncthreads();  // the first row of threads has written
  tile.for_each_channel([&](int i) {
    to[tile.first + i] = table[0][i];
    to[channels + tile.first + i] = table[1][i];
  });
}

/// The second stage of a sum: a block for 8 channels (a sector), its rows of threads on the slices.
constexpr unsigned kTotalChannels = 8;
inline simt::Config config_of_totals(std::int64_t channels) {
  return {.grid = dim3(static_cast<unsigned>(lib::ceil_div(channels, kTotalChannels))),
          .block = dim3(kTotalChannels, kVectorThreads / kTotalChannels)};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
