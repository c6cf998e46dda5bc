// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv_relu_pool/mma.cuh"
#include "kernels/ops/conv_relu_pool/window_maxima.cuh"

/// Passes over images that stay in shared memory as a whole. The im2col matrix is not built, not even there: lanes
/// point ldmatrix at the rows (positions) that a kernel position sees, so that a step of the main loop has no index
/// arithmetic but additions of the same number in all lanes; and dz is computed once an image instead of once for each
/// kernel position.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {

/// Each false, having done nothing, where it does not know the geometry or an array is not aligned.
bool forward(Stream& stream, const ForwardArgs& args);  // 3_resident_forward.cu
bool dgrad(Stream& stream, const BackwardArgs& args);   // 3_resident_dgrad.cu
bool wgrad(Stream& stream, const BackwardArgs& args);   // 3_resident_wgrad.cu; dw and db
std::size_t wgrad_workspace_bytes(const Geometry& g);

inline constexpr int kVector = lib::kVectorElements;
inline constexpr int kInputs = 32;  // of a block
inline constexpr int kInputPitch =
    kInputs + kVector;  // of their rows in shared memory: eight of them hit no bank twice
inline constexpr std::int64_t kMostSharedBytes = 96 << 10;

/// dz of an image in shared memory: a row of channels for each position, `line` of them for each row of the image, the
/// first one after a margin. Who clears it once has zeros around it for all images.
struct GradientImage {
  int first, line, rows;           // positions
  int channels, pitch;             // the filters of a block, and elements of a row; an odd number of vectors
  conv2d::Divisor vectors, width;  // of these channels; of y
  int cells, size;                 // positions of y; of a window

  __device__ int elements() const { return rows * pitch; }
};

__device__ inline void clear(uint4* to, int vectors) {
  for (int i = static_cast<int>(threadIdx.x); i < vectors; i += static_cast<int>(blockDim.x)) to[i] = uint4{};
}

template <class T>
__device__ void store_gradient(T* to, const GradientImage& g, const PooledGradient<T>& dz, int image,
                               int first_channel) {
  const int items = g.cells * g.vectors.value();
  for (int i = static_cast<int>(threadIdx.x); i < items; i += static_cast<int>(blockDim.x)) {
    const auto [cell, vector] = g.vectors.divide(i);
    const auto [down, across] = g.width.divide(cell);
    if (first_channel + vector * kVector >= dz.channels) continue;
    auto eight = dz.fetch({image * g.cells + cell, 0}, first_channel + vector * kVector);
    T* here = to + (g.first + down * g.size * g.line + across * g.size) * g.pitch + vector * kVector;
    const std::uint32_t codes = eight.differences;
    for (int row = 0; row < g.size; ++row)
      for (int column = 0; column < g.size; ++column) {
        eight.differences = codes ^ eight_codes(row * g.size + column);
        PooledGradient<T>::store(here + (row * g.line + column) * g.pitch, eight);
      }
  }
}

/// Calls visit(row, column, pair) for a lane's pairs of neighbouring sums of 16 x 32.
template <class Visit>
__device__ void for_each_pair(const float (&sums)[kInputs / 8][4], int lane, Visit visit) {
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kInputs / 8; ++j) {
    SIMT_UNROLL_ON_GPU
    for (int e = 0; e < 4; e += 2) {
      const simt::Position at = simt::mma_position_in_c(lane, e);
      visit(at.row, 8 * j + at.column, sums[j][e], sums[j][e + 1]);
    }
  }
}

/// sums += a b for 16 of K and 32 columns; `b` is the lane's row of them, N-major.
template <class T>
__device__ void multiply_add(float (&sums)[kInputs / 8][4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[kInputs / 16][4]) {
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kInputs / 8; ++j) lib::mma_m16n8k16<T>(sums[j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
}

__device__ inline void load_columns(std::uint32_t (&b)[kInputs / 16][4], const void* row) {
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kInputs / 16; ++j) lib::ldmatrix_x4_trans(b[j], static_cast<const char*>(row) + 32 * j);
}

constexpr int as_int(std::int64_t value) { return static_cast<int>(value); }

/// Channels of a row in shared memory, of so many that count.
constexpr std::int64_t pitch_of(std::int64_t channels) { return lib::ceil_div(channels, 16) * 16 + kVector; }

/// `line`, `rows` and `first`: positions; see GradientImage.
inline GradientImage gradient_image(const Geometry& g, std::int64_t channels, std::int64_t line, std::int64_t rows,
                                    std::int64_t first) {
  return {.first = as_int(first),
          .line = as_int(line),
          .rows = as_int(rows),
          .channels = as_int(channels),
          .pitch = as_int(pitch_of(channels)),
          .vectors = conv2d::Divisor(as_int(channels / kVector)),
          .width = conv2d::Divisor(as_int(g.out_width())),
          .cells = as_int(g.out_height() * g.out_width()),
          .size = as_int(g.window)};
}

inline std::int64_t input_blocks(const Geometry& g) { return lib::ceil_div(g.conv.in_channels, kInputs); }

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
