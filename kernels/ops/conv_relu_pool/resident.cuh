// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/lib/async_copy.h"
#include "kernels/lib/load_ahead.h"
#include "kernels/lib/tensor_core.h"
#include "kernels/ops/conv_relu_pool/pooled_gradient.cuh"

/// Passes over images that stay in shared memory as a whole. The im2col matrix is not built, not even there: lanes
/// point ldmatrix at the rows (positions) that a kernel position sees, so that a step of the main loop has no index
/// arithmetic but additions of the same number in all lanes; and dz of an image is in shared memory alone.
namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

/// The same with wgmma: false, having done nothing, as below.
namespace wgmma {

bool forward(Stream& stream, const ForwardArgs& args);           // 4_wgmma_forward.cu
bool gathered_forward(Stream& stream, const ForwardArgs& args);  // 4_wgmma_gathered.cu
bool dgrad(Stream& stream, const BackwardArgs& args);            // 4_wgmma_dgrad.cu
bool wgrad(Stream& stream, const BackwardArgs& args);            // 4_wgmma_wgrad.cu; dw and db
std::size_t wgrad_workspace_bytes(const Geometry& g);

}  // namespace wgmma

namespace resident {

/// Each false, having done nothing, where it does not know the geometry or an array is not aligned.
bool forward(Stream& stream, const ForwardArgs& args);  // 3_resident_forward.cu
bool dgrad(Stream& stream, const BackwardArgs& args);   // 3_resident_dgrad.cu
bool wgrad(Stream& stream, const BackwardArgs& args);   // 3_resident_wgrad.cu; dw and db
std::size_t wgrad_workspace_bytes(const Geometry& g);

inline constexpr int kVector = lib::kVectorElements;
inline constexpr int kInputs = 32;  // of a block
inline constexpr std::int64_t kMostSharedBytes = 96 << 10;
inline constexpr int kKernel = 3;  // rows and columns of a filter, forward and in dgrad
inline constexpr int kWindow = 2;  // the same of a window

/// Elements of a row of `channels`, a multiple of 16, in shared memory: an odd number of vectors, so that eight rows
/// hit no bank twice.
template <class Int>
constexpr Int pitch_of(Int channels) {
  return channels + kVector;
}
inline constexpr int kInputPitch = pitch_of(kInputs);

/// dz of an image in shared memory: a row of channels for each position, `line` of them for each row of the image, the
/// first one after a margin. Who clears it once has zeros around it for all images.
struct GradientImage {
  int first, line, rows;  // positions
  conv2d::Divisor width;  // of y
  int cells;              // positions of y
};

/// x of an image in shared memory, for wgmma: for each vector of 8 channels a list of pixels, in rows with padding.
struct PixelLists {
  int pixels, line, padding, pitch;  // of x; of a row with padding; of a list
  conv2d::Divisor width;             // of x

  PixelLists(const Geometry& g, std::int64_t line_pixels, std::int64_t pitch_pixels)
      : pixels(static_cast<int>(g.conv.in_height * g.conv.in_width)),
        line(static_cast<int>(line_pixels)),
        padding(static_cast<int>(g.conv.padding)),
        pitch(static_cast<int>(pitch_pixels)),
        width(static_cast<int>(g.conv.in_width)) {}

  /// Starts to copy kInputs channels of each pixel, which has `channels` of them, by a block of kThreads.
  template <int kThreads, class T>
  __device__ void start_copy(T* to, const T* image, int channels) const {
    constexpr int kVectors = kInputs / kVector;
    const int thread = static_cast<int>(threadIdx.x);
    to += thread % kVectors * pitch * kVector;
    image += thread % kVectors * kVector;
    for (int pixel = thread / kVectors; pixel < pixels; pixel += kThreads / kVectors) {
      int at = pixel;
      if (padding > 0) {
        const auto [row, column] = width.divide(pixel);
        at = (row + padding) * line + column + padding;
      }
      async_copy16(to + at * kVector, image + pixel * channels);
    }
    async_commit();
  }
};
/// The length of a list of at least so many positions, whose vectors hit no bank twice when neighbouring threads access
/// all `vectors` of a position, or of two: one or two more than a multiple of eight.
constexpr std::int64_t list_pitch(std::int64_t positions, std::int64_t vectors) {
  const std::int64_t more = 8 / vectors;
  return lib::ceil_div(positions - more, 8) * 8 + more;
}

/// By `threads` threads, of which this one is number `thread`.
__device__ inline void clear(void* to, int vectors, int thread, int threads) {
  for (int i = thread; i < vectors; i += threads) static_cast<uint4*>(to)[i] = uint4{};
}
__device__ inline void clear(void* to, int vectors) {
  clear(to, vectors, static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x));
}

/// Calls visit(i) for i from 0 to kCount - 1, each a constant.
template <int kCount, class Visit>
__device__ void for_each_constant(Visit visit) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (visit(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

inline constexpr int kWindowsAtOnce = 4;  // whose dy and codes are on their way to a thread

/// dz of eight channels in the four elements of a window: dy in the one that a channel's code names, 0 in the others.
/// Elements of the second row are `row` bytes after those of the first.
template <int kPitch>
__device__ void store_window(lib::MatrixRow to, int row, const uint4& dy, std::uint32_t codes) {
  const ElementsOfTwoByTwo elements(codes);
  for_each_constant<kWindow>([&](auto i) {
    for_each_constant<kWindow>(
        [&](auto j) { to.template store<2 * j * kPitch>(kept_elements(dy, elements.names[kWindow * i + j])); });
    to = to + row;
  });
}

/// Of `image`, kChannels from `first_channel` on, by `threads` threads, of which this one is number `thread`.
template <int kChannels, class T>
__device__ void store_gradient(T* to, const GradientImage& g, const PooledGradient<T>& dz, int image, int first_channel,
                               int thread, int threads) {
  constexpr int kPitch = pitch_of(kChannels);
  constexpr unsigned kVectors = kChannels / kVector;
  const auto first = static_cast<unsigned>(thread);
  const int channel = static_cast<int>(first % kVectors) * kVector;  // of a thread always the same
  if (first_channel + channel >= dz.channels) return;
  const int row = 2 * g.line * kPitch;  // bytes
  const int step = static_cast<int>(static_cast<unsigned>(threads) / kVectors);
  const lib::MatrixRow first_cell(to + g.first * kPitch + channel);
  lib::load_ahead<kWindowsAtOnce>(
      static_cast<int>(first / kVectors), g.cells, step,
      [&](int cell) { return dz.fetch(image * g.cells + cell, first_channel + channel); },
      [&](int cell, const typename PooledGradient<T>::Vector& eight) {
        const auto [down, across] = g.width.divide(cell);
        store_window<kPitch>(first_cell + kWindow * (down * row + across * (2 * kPitch)), row, eight.dy, eight.codes);
      });
}

/// sums += a b for 16 of K and 32 columns; `b` is the lane's row of them, N-major.
template <class T>
__device__ void multiply_add(float (&sums)[kInputs / 8][4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[kInputs / 16][4]) {
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kInputs / 8; ++j) lib::mma_m16n8k16<T>(sums[j], a, b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
}

/// The columns of multiply_add, from the lane's row kBytes after this one.
template <int kBytes>
__device__ void load_columns(std::uint32_t (&b)[kInputs / 16][4], lib::MatrixRow row) {
  row.load_trans<kBytes>(b[0]);
  row.load_trans<kBytes + 32>(b[1]);
}

/// Exchanges 32-bit words among four neighbouring lanes: word j of lane i becomes word i of lane j.
__device__ inline void transpose_of_four(std::uint32_t (&words)[4], int lane) {
  SIMT_UNROLL_ON_GPU
  for (int distance = 1; distance < 4; distance *= 2) {
    const bool upper = lane & distance;
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < 4; ++i) {
      if (i & distance) continue;
      std::uint32_t& low = words[i];
      std::uint32_t& high = words[i + distance];
      const std::uint32_t theirs = __shfl_xor_sync(0xffffffffu, upper ? low : high, distance);
      (upper ? low : high) = theirs;
    }
  }
}

constexpr int as_int(std::int64_t value) { return static_cast<int>(value); }

/// `line`, `rows` and `first`: positions; see GradientImage.
inline GradientImage gradient_image(const Geometry& g, std::int64_t line, std::int64_t rows, std::int64_t first) {
  return {.first = as_int(first),
          .line = as_int(line),
          .rows = as_int(rows),
          .width = conv2d::Divisor(as_int(g.out_width())),
          .cells = as_int(g.out_height() * g.out_width())};
}

/// One block for each multiprocessor of a large GPU.
inline constexpr std::int64_t kMultiprocessors = 132;

inline std::int64_t input_blocks(const Geometry& g) { return lib::ceil_div(g.conv.in_channels, kInputs); }

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
