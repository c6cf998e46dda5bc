// SPDX-License-Identifier: Apache-2.0
// Idea: a thread takes the neighbouring channels that one 16-byte access moves, and neighbouring threads take
//   neighbouring vectors, across positions too: a warp touches whole sectors. A window of many inputs, such as a whole
//   image, is divided among the threads of a block.
// Mapping: small windows: a warp per output row, lanes over (position, vector). Large windows: a block per position and
//   up to 32 vectors, blockDim.x; its rows of threads take every blockDim.y-th input, then add up in shared memory.
//   Backward: a warp per input row, lanes over (position, vector).
// Traffic and bound: as before, but each sector once a request; bound by memory.
// Gains over the step before: sectors of a request: strips touches one for each lane and channel.
// Still slow because: a thread waits for its loads of a small window one after the other. In the convolution's epilogue
//   the inputs would never be written.
// Limits: with channels that are no multiple of a vector (8 of 16 bits, 4 of f32), a thread takes one channel.

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/windows.h"
#include "kernels/ops/avg_pool2d/avg_pool2d.h"
#include "kernels/ops/avg_pool2d/windows.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::avg_pool2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kLeastColumns = 4;      // of threads of such a block
constexpr int kPartials = 4096;            // their sums: of 4 columns and 8 channels; others need less
constexpr std::int64_t kLargeWindow = 16;  // inputs from which on a block divides a window

template <int kWidth>
__device__ inline void add_product(float (&sums)[kWidth], float factor, const float (&values)[kWidth]) {
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) sums[j] += factor * values[j];
}

template <class T, int kWidth>
__global__ void avg_pool2d_forward_vectors_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ x,
                                                  T* __restrict__ y) {
  const int vectors = s.channels / kWidth;
  for (std::int64_t row : lib::row_range(s.out_rows())) {
    const std::int64_t n = row / s.out_height;
    const int oh = static_cast<int>(row - n * s.out_height);
    const lib::InsideWindow rows = s.rows_of(oh);
    const T* top = x + (n * s.height + s.top_of(oh)) * s.line();
    for (int item : lib::lane_range(s.out_width * vectors)) {
      const int ow = item / vectors;
      const int first = (item - ow * vectors) * kWidth;
      const lib::InsideWindow cols = s.cols_of(ow);
      const T* corner = top + s.left_of(ow) * s.channels + first;
      float sums[kWidth] = {};
      for (int i = rows.first; i < rows.end; ++i)
        for (int j = cols.first; j < cols.end; ++j) {
          float values[kWidth];
          lib::load_channels(corner + i * s.line() + j * s.channels, values);
          add_product(sums, 1.0f, values);
        }
      float means[kWidth] = {};
      add_product(means, s.weight(rows, cols), sums);
      lib::store_channels(y + row * s.out_width * s.channels + item * kWidth, means);
    }
  }
}

/// Where number j of thread (column, row) is in shared memory: the threads of a warp use different banks both when they
/// store theirs and when they add up neighbouring channels.
template <int kWidth>
__device__ inline unsigned partial_at(unsigned row, unsigned column, int j) {
  return (row * kWidth + static_cast<unsigned>(j)) * (blockDim.x + 4) + column;
}

template <class T, int kWidth>
__global__ void avg_pool2d_forward_blocks_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ x, T* __restrict__ y) {
  SIMT_SHARED(float[kPartials], partial);
  const std::int64_t position = blockIdx.x;
  const std::int64_t row = position / s.out_width;
  const std::int64_t n = row / s.out_height;
  const int oh = static_cast<int>(row - n * s.out_height);
  const int ow = static_cast<int>(position - row * s.out_width);
  const lib::InsideWindow rows = s.rows_of(oh);
  const lib::InsideWindow cols = s.cols_of(ow);
  const int first_channel = static_cast<int>(blockIdx.y * blockDim.x) * kWidth;
  const int first = first_channel + static_cast<int>(threadIdx.x) * kWidth;
  const T* corner = x + (n * s.height + s.top_of(oh)) * s.line() + s.left_of(ow) * s.channels + first;
  float sums[kWidth] = {};
  if (first < s.channels) {
    const int inputs = rows.count() * cols.count();
    for (int input = static_cast<int>(threadIdx.y); input < inputs; input += static_cast<int>(blockDim.y)) {
      const int i = input / cols.count();
      const int j = input - i * cols.count();
      float values[kWidth];
      lib::load_channels(corner + (rows.first + i) * s.line() + (cols.first + j) * s.channels, values);
      add_product(sums, 1.0f, values);
    }
  }
  for (int j = 0; j < kWidth; ++j) partial[partial_at<kWidth>(threadIdx.y, threadIdx.x, j)] = sums[j];
  __syncthreads();  // a channel's sum takes numbers of every row of threads
  const int rest = s.channels - first_channel;
  const int columns = static_cast<int>(blockDim.x) * kWidth;
  const int channels = rest < columns ? rest : columns;
  const float weight = s.weight(rows, cols);
  for (int c = static_cast<int>(threadIdx.x + blockDim.x * threadIdx.y); c < channels; c += kThreads) {
    float sum = 0;
    for (unsigned r = 0; r < blockDim.y; ++r)
      sum += partial[partial_at<kWidth>(r, static_cast<unsigned>(c) / kWidth, c % kWidth)];
    y[position * s.channels + first_channel + c] = lib::from_f32<T>(sum * weight);
  }
}

template <class T, int kWidth>
__global__ void avg_pool2d_backward_vectors_kernel(SIMT_GRID_CONST(Sizes) s, const T* __restrict__ dy,
                                                   T* __restrict__ dx) {
  const int vectors = s.channels / kWidth;
  for (std::int64_t row : lib::row_range(s.in_rows())) {
    const std::int64_t n = row / s.height;
    const lib::CoveringWindows rows = s.windows_over_row(static_cast<int>(row - n * s.height));
    for (int item : lib::lane_range(s.width * vectors)) {
      const int iw = item / vectors;
      const int first = (item - iw * vectors) * kWidth;
      const lib::CoveringWindows cols = s.windows_over_col(iw);
      float sums[kWidth] = {};
      for (int oh = rows.first; oh <= rows.last; ++oh)
        for (int ow = cols.first; ow <= cols.last; ++ow) {
          float values[kWidth];
          lib::load_channels(dy + ((n * s.out_height + oh) * s.out_width + ow) * s.channels + first, values);
          add_product(sums, s.weight(s.rows_of(oh), s.cols_of(ow)), values);
        }
      lib::store_channels(dx + row * s.line() + item * kWidth, sums);
    }
  }
}

/// A block per position and group of vectors: so many columns of threads that no more than half of them rest.
simt::Config blocks_for(const Geometry& g, int vectors) {
  const std::int64_t positions = g.batch * g.out_height() * g.out_width();
  unsigned columns = kLeastColumns;
  while (columns < 32 && static_cast<int>(columns) < vectors) columns *= 2;
  const unsigned groups = (static_cast<unsigned>(vectors) + columns - 1) / columns;
  lib::check_limit("avg_pool2d", "channels", groups, 65535);
  return {.grid = dim3(lib::narrow<unsigned>("avg_pool2d", "outputs of a channel", positions), groups),
          .block = dim3(columns, kThreads / columns)};
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  const Sizes sizes(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* x = static_cast<const T*>(args.x);
    T* y = static_cast<T*>(args.y);
    lib::with_channel_width<T>(g.channels, {x, y}, [&](auto width) {
      if (g.window_elements() >= kLargeWindow)
        simt::launch<avg_pool2d_forward_blocks_kernel<T, width.value>>(
            stream, blocks_for(g, sizes.channels / width.value), sizes, x, y);
      else
        simt::launch_flat<avg_pool2d_forward_vectors_kernel<T, width.value>>(
            stream, lib::rows_for(stream, sizes.out_rows(), g.in_elements()), sizes, x, y);
    });
  });
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.in_elements() == 0) return;
  const Sizes sizes(g);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* dy = static_cast<const T*>(args.dy);
    T* dx = static_cast<T*>(args.dx);
    lib::with_channel_width<T>(g.channels, {dy, dx}, [&](auto width) {
      simt::launch_flat<avg_pool2d_backward_vectors_kernel<T, width.value>>(
          stream, lib::rows_for(stream, sizes.in_rows(), g.in_elements()), sizes, dy, dx);
    });
  });
}

}  // namespace

Variant vectors() { return {"vectors", forward, backward, lib::supports_cuda_floating, lib::is_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::avg_pool2d
