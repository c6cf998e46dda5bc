// SPDX-License-Identifier: Apache-2.0
// Idea: NHWC keeps the channels of a position together, so a row of the matrix [positions, channels] needs the same
//   bias in the same order; the gradient is the sum of the columns.
// Mapping: add: a warp walks along a row. grad: a block per strip of 8 channels; each thread adds up its rows' strips
//   in registers, then the block adds up its threads.
// Traffic and bound: add reads and writes each element once; grad reads each once; both bound by memory.
// Still slow because: grad has one block per 8 channels, too few for a large GPU: rows must be split over blocks, and
//   added up in a second stage.

#include "kernels/ops/bias/bias.h"

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::bias {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kStrip = 8;
constexpr int kGradThreads = 256;

template <class T>
__global__ void bias_add_rows_kernel(const T* x, const T* __restrict__ bias, T* y, std::int64_t rows, int channels) {
  for (std::int64_t row : lib::row_range(rows)) {
    const T* x_row = x + row * channels;
    T* y_row = y + row * channels;
    for (int c : lib::lane_range(channels)) y_row[c] = lib::from_f32<T>(lib::to_f32(x_row[c]) + lib::to_f32(bias[c]));
  }
}

template <class T>
__global__ void bias_grad_rows_kernel(const T* __restrict__ dy, float* __restrict__ db, unsigned rows, int channels,
                                      bool accumulate) {
  const int first = static_cast<int>(blockIdx.x) * kStrip;
  const int width = lib::strip_width(channels, blockIdx.x, kStrip);
  lib::Strip<kStrip> strip;
  for (unsigned row : simt::block_range(0, rows)) strip.add(dy + std::int64_t{row} * channels + first, width);
  float sums[kStrip];
  strip.copy_to(sums);
  lib::block_sum<kGradThreads>(sums, [&](int j, float sum) {
    if (j < width) db[first + j] = accumulate ? db[first + j] + sum : sum;
  });
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
  const simt::Config config{.grid = dim3(static_cast<unsigned>(lib::strips(args.channels, kStrip))),
                            .block = dim3(kGradThreads)};
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch<bias_grad_rows_kernel<T>>(stream, config, static_cast<const T*>(args.dy), args.db,
                                           lib::narrow<unsigned>("bias grad", "rows", args.rows),
                                           lib::narrow<int>("bias grad", "channels", args.channels), args.accumulate);
  });
}

}  // namespace

Variant rows() { return {"rows", add, grad, lib::supports_floating}; }

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
