// SPDX-License-Identifier: Apache-2.0
// Idea: NHWC keeps the channels of a position together, so a row of the matrix [positions, channels] needs the same
//   bias in the same order; the gradient is the sum of the columns.
// Mapping: add: a warp walks along a row. grad: a thread has a strip of neighbouring channels, and goes down all rows:
//   one channel on a GPU, so that a warp's loads are neighbours, and 32 on a CPU, in two chains of vectors. The gradient
//   of a ReLU comes first, in a launch of its own with an element for each thread.
// Traffic and bound: add reads and writes each element once; grad reads each once; both bound by memory.
// Still slow because: grad has one thread for all rows of a channel, far too few for a GPU.

#include "kernels/ops/bias/bias.h"

#include <algorithm>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::bias {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kStrip = lib::kCopyKind == DeviceKind::cuda ? 1 : 32;
constexpr std::int64_t kBatch = 256;  // rows that are added up before they are added to the others
constexpr int kChains = 2;            // additions that do not wait for each other

template <class T>
__global__ void bias_add_rows_kernel(const T* x, const T* __restrict__ bias, T* y, std::int64_t rows, int channels) {
  for (std::int64_t row : lib::row_range(rows)) {
    const T* x_row = x + row * channels;
    T* y_row = y + row * channels;
    for (int c : lib::lane_range(channels)) y_row[c] = lib::from_f32<T>(lib::to_f32(x_row[c]) + lib::to_f32(bias[c]));
  }
}

/// Of `width` columns from `from` on. Where the width is known when this is compiled, no part of a strip is asked for it.
template <class T, class Width>
__device__ inline lib::StripSums<kStrip> sum_strip(const T* from, Width width, std::int64_t rows, int channels) {
  lib::StripSums<kStrip> sums;
  for (std::int64_t batch = 0; batch < rows; batch += kBatch) {
    const std::int64_t end = rows - batch < kBatch ? rows : batch + kBatch;
    lib::StripSums<kStrip> chains[kChains];
    std::int64_t row = batch;
    for (; row + kChains <= end; row += kChains)
      for (auto& chain : chains) {
        chain.add(from, width);
        from += channels;
      }
    for (; row < end; ++row, from += channels) chains[0].add(from, width);
    for (const lib::StripSums<kStrip>& chain : chains) sums.add(chain);
  }
  return sums;
}

template <class T>
__global__ void bias_grad_strips_kernel(const T* __restrict__ dy, float* __restrict__ db, std::int64_t rows,
                                        int channels, bool accumulate) {
  for (std::size_t strip : simt::grid_range(static_cast<std::size_t>(lib::strips(channels, kStrip)))) {
    const int first = static_cast<int>(strip) * kStrip;
    const int width = lib::strip_width(channels, static_cast<std::int64_t>(strip), kStrip);
    const lib::StripSums<kStrip> sums =
        width == kStrip ? sum_strip(dy + first, std::integral_constant<int, kStrip>(), rows, channels)
                        : sum_strip(dy + first, width, rows, channels);
    for (int j = 0; j < width; ++j) db[first + j] = accumulate ? db[first + j] + sums[j] : sums[j];
  }
}

template <class T>
__global__ void bias_relu_gradient_kernel(const T* y, const T* dy, T* dx, std::size_t elements) {
  for (std::size_t i : simt::grid_range(elements)) dx[i] = lib::to_f32(y[i]) > 0.0f ? dy[i] : lib::from_f32<T>(0.0f);
}

void add(Stream& stream, const AddArgs& args) {
  check_args(args);
  if (args.rows == 0 || args.channels == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<bias_add_rows_kernel<T>>(stream, lib::rows_for(stream, args.rows, args.rows * args.channels),
                                               static_cast<const T*>(args.x), static_cast<const T*>(args.bias),
                                               static_cast<T*>(args.y), args.rows,
                                               lib::narrow<int>("bias add", "channels", args.channels));
  });
}

void grad(Stream& stream, const GradArgs& args) {
  check_args(args);
  if (args.channels == 0) return;
  const int channels = lib::narrow<int>("bias grad", "channels", args.channels);
  const auto work = static_cast<std::size_t>(std::max<std::int64_t>(args.rows, 1) * args.channels);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto* gradient = static_cast<const T*>(args.dy);
    if (args.y && args.rows > 0) {
      auto* const dx = static_cast<T*>(args.dx);
      const auto elements = static_cast<std::size_t>(args.rows * args.channels);
      simt::launch_flat<bias_relu_gradient_kernel<T>>(stream, simt::grid_for(stream, elements),
                                                      static_cast<const T*>(args.y), gradient, dx, elements);
      gradient = dx;
    }
    simt::launch_flat<bias_grad_strips_kernel<T>>(stream, simt::grid_for(stream, work), gradient, args.db, args.rows,
                                                  channels, args.accumulate);
  });
}

}  // namespace

Variant rows() { return {.name = "rows", .add = add, .grad = grad, .supports = lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
