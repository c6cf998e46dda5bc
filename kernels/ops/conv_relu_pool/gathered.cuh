// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/ops/conv2d/gathered_tile.cuh"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/ops/conv_relu_pool/pair_maxima.cuh"

/// conv2d's forward pass as a product of gathered operands (kernels/ops/conv2d/gather.cuh), with rows in such an order
/// that a block's tile of C has whole windows of 2 x 2, which are pooled in shared memory.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

/// Patches with a row for each element of each window: row 4 w + e is element e of window w. The grid is of windows.
template <class T>
struct WindowRows : conv2d::PatchRows<T, 16> {
  using Position = typename conv2d::PatchView<T>::Position;

  /// Of the convolution's output.
  __device__ Position position(int row) const {
    const auto [line, across] = this->grid_width.divide(row >> 2);
    const auto [image, down] = this->grid_height.divide(line);
    return {image, 2 * down + (row >> 1 & 1), 2 * across + (row & 1)};
  }
};

template <class T>
struct PooledProduct {
  WindowRows<T> a;
  conv2d::FilterRows<T, 16> b;
  int rows, columns, k;
};

/// Of vectors of eight channels in the swizzled rows of a window, that of the first element; those of the others follow
/// at (offset ^ 16 e) + 128 e.
__device__ inline unsigned first_offset(unsigned window, unsigned vector) {
  return window * 4 * simt::kSwizzledRowBytes + (vector ^ window % 2 * 4) * 16;
}
__device__ inline unsigned offset_of(unsigned first, unsigned element) {
  return (first ^ element * 16) + element * simt::kSwizzledRowBytes;
}

/// One channel after the other, also where maxima are large.
template <class T>
__device__ void pool_elements(const unsigned char* tile, unsigned first, T* y, std::uint8_t* codes) {
  unsigned code[2];
  for (unsigned c = 0; c < lib::kVectorElements; ++c) {
    float best = 0;
    for (unsigned element = 0; element < 4; ++element) {
      const float z = lib::to_f32(simt::load_as<T>(tile + offset_of(first, element) + c * sizeof(T)));
      if (element > 0 && !(z > best || z != z)) continue;  // a NaN takes all, and no number takes it back
      best = z;
      code[c % 2] = element;
    }
    if (best <= 0) code[c % 2] = kCutOff;
    y[c] = lib::from_f32<T>(best);
    if (c % 2 == 1) codes[c / 2] = packed_codes(code[0], code[1]);
  }
}

/// Eight channels of a window; z is rounded, and not negative.
template <class T>
__device__ void pool_vector(const unsigned char* tile, unsigned first, T* y, std::uint8_t* codes) {
  std::uint32_t z[4][4];  // two channels, and an element
  SIMT_UNROLL_ON_GPU
  for (unsigned e = 0; e < 4; ++e) {
    const auto pairs = simt::load_as<uint4>(tile + offset_of(first, e));
    z[0][e] = pairs.x, z[1][e] = pairs.y, z[2][e] = pairs.z, z[3][e] = pairs.w;
  }
  std::uint32_t maxima[4], code = 0;  // of channels 2 i and 2 i + 1 from bits 4 i and 16 + 4 i on
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 4; ++i) maxima[i] = maxima_of_pairs(z[i], code, 4 * i);
  if (are_large(maxima)) [[unlikely]]
    return pool_elements(tile, first, y, codes);
  simt::store_as(y, uint4{maxima[0], maxima[1], maxima[2], maxima[3]});
  const std::uint32_t outer = code & 0x0f0f0f0fu, inner = code >> 4 & 0x0f0f0f0fu;  // channels 0 4 1 5, and 2 6 3 7
  simt::store_as(codes, lib::permute_bytes<0x5140>(outer, inner) | lib::permute_bytes<0x7362>(outer, inner) << 4);
}

/// y and codes of this block's tile of windows and filters.
template <class Multiplier, class T>
__device__ void pool_tile(const PooledProduct<T>& product, const T* b, T* y, std::uint8_t* codes) {
  SIMT_DYNAMIC_SHARED(unsigned char, memory);
  unsigned char* const tile = lib::align_shared<simt::kSwizzlePatternBytes>(memory);
  const int first_row = static_cast<int>(blockIdx.x) * Multiplier::kRows;
  const int first_column = static_cast<int>(blockIdx.y) * Multiplier::kColumns;
  const auto k = lib::KOfBlock::whole(product.k);
  conv2d::GatheredStages<Multiplier, PooledProduct<T>> stages(tile, product, first_row, first_column, k);
  typename Multiplier::Sums sums;
  conv2d::start_from_bias<Multiplier>(sums, b + first_column, product.columns - first_column);
  Multiplier::multiply(sums, stages, product, product.k);
  async_wait<0>();
  __syncthreads();  // no thread still reads the stages
  conv2d::round_to<Multiplier, T, true>(sums, tile);
  __syncthreads();  // the tile is complete
  constexpr unsigned kBox = std::min(lib::kSwizzledRow<T>, Multiplier::kColumns);
  constexpr unsigned kVectors = kBox / lib::kVectorElements;
  constexpr unsigned kWindows = Multiplier::kRows / 4, kWindowsOfPass = Multiplier::kThreads / kVectors;
  const unsigned vector = threadIdx.x % kVectors;
  SIMT_UNROLL_ON_GPU
  for (unsigned box = 0; box * kBox < Multiplier::kColumns; ++box) {
    const auto channel = first_column + static_cast<int>(box * kBox + vector * lib::kVectorElements);
    SIMT_UNROLL_ON_GPU
    for (unsigned pass = 0; pass < kWindows / kWindowsOfPass; ++pass) {
      const unsigned window = pass * kWindowsOfPass + threadIdx.x / kVectors;
      if (channel >= product.columns || first_row + static_cast<int>(window) * 4 >= product.rows) continue;
      const std::int64_t at = (std::int64_t{first_row / 4} + window) * product.columns + channel;
      pool_vector(tile + box * Multiplier::kRows * simt::kSwizzledRowBytes, first_offset(window, vector), y + at,
                  codes + at / 2);
    }
  }
}

/// Whether channels are whole vectors, arrays aligned to them, and windows 2 x 2.
template <class T>
bool is_gathered(const ForwardArgs& args) {
  const conv2d::Geometry& g = args.geometry.conv;
  return args.geometry.window == 2 && conv2d::is_gathered(g) && args.x_dtype.value_or(args.dtype) == args.dtype &&
         conv2d::vector_bytes<T>(g, {args.x, args.w, args.y}) == 16 &&
         reinterpret_cast<std::uintptr_t>(args.b) % 4 == 0 && reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0;
}

template <class T>
PooledProduct<T> pooled_product(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  WindowRows<T> a{{conv2d::patches_of_x<T>(g.conv, args.x)}};
  a.rows = lib::narrow<int>("conv_relu_pool", "positions", 4 * g.out_positions());
  a.grid_height = conv2d::Divisor(static_cast<int>(g.out_height()));
  a.grid_width = conv2d::Divisor(static_cast<int>(g.out_width()));
  const int filters = lib::narrow<int>("conv_relu_pool", "out_channels", g.conv.out_channels);
  const int k = a.columns();
  return {a, {static_cast<const T*>(args.w), filters, k}, a.rows, filters, k};
}

/// launch(Element<Tile>(), config, product) with a tile as conv2d takes, or one for few filters; false, without a call,
/// if the product is not gathered.
template <template <int, int> class Tile, class Launch>
bool run_gathered(const ForwardArgs& args, Launch launch) {
  bool gathered = false;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    gathered = is_gathered<T>(args);
    if (!gathered) return;
    const PooledProduct<T> product = pooled_product<T>(args);
    const auto run = [&]<class Chosen>(lib::Element<Chosen> tile) {
      constexpr conv2d::TileShape kShape{
          .rows = Chosen::kRows, .columns = Chosen::kColumns, .k = conv2d::kGatheredK<T>};
      const dim3 grid = conv2d::grid_of(product.rows, product.columns, kShape, 1);
      launch(tile, conv2d::gathered_config<Chosen, PooledProduct<T>>(grid), product);
    };
    if (product.columns <= 32)
      run(lib::Element<Tile<128, 32>>());
    else
      conv2d::TensorTiles<Tile>::template with_tile<16>(product.rows, product.columns, 1, run);
  });
  return gathered;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
