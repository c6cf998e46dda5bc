// SPDX-License-Identifier: Apache-2.0
// The gradient; add is that of the step before.
// Idea: rows are split over blocks, and the blocks' sums added up in a second launch, or by the caller.
// Mapping: each block of 256 threads has some of the rows, and up to 32 vectors of 16 bytes of a row: neighbouring
//   threads have neighbouring vectors, then the next rows, so that a warp reads whole lines. A thread adds up its
//   vectors, four loads in flight; then the block adds up its threads, neighbours in neighbouring banks. With a ReLU
//   a thread masks its vectors by those of y, and writes them before it adds them up.
// Traffic and bound: reads each element once, of a ReLU two, and writes one; bound by memory.
// Gains over the step before: all multiprocessors read, and 16 bytes a load.
// Still slow because: the kernel that makes dy has it in registers, and could add it up there.
// Limits: rows < 2^31; without a workspace, rows are not split. Channels that are not whole vectors are loaded one by
//   one.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/half_pairs.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/bias/bias.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::bias {
inline namespace GRADRING_KERNEL_COPY {

Variant rows();  // 1_rows.cu

namespace {

constexpr int kThreads = lib::kCopyKind == DeviceKind::cuda ? 256 : 64;
constexpr int kMostVectors = 32;  // of a row that a block has
constexpr int kAtOnce = 4;        // rows whose loads a thread has in flight
constexpr int kBatch = 32;        // rows that a thread adds up before it adds them to the others
constexpr int kTurns = 8;         // rows of a thread, at least, where rows are split

/// How a block's threads share the channels from the block's first on.
struct Layout {
  int vectors;  ///< of a row
  int rows;     ///< at a time; threads that are left over have none

  Layout(std::int64_t channels, int width)
      : vectors(static_cast<int>(std::min<std::int64_t>(lib::ceil_div(channels, width), kMostVectors))),
        rows(kThreads / vectors) {}
};

template <class T, int kWidth>
__device__ lib::ChannelVector<T, kWidth> load_vector(const T* from) {
  using Word = lib::VectorWord<T, kWidth>;
  lib::ChannelVector<T, kWidth> vector;
  simt::store_as<Word>(vector.values, simt::load_as<Word>(from));
  return vector;
}

/// The gradient of a ReLU with the output y.
template <class T, int kWidth>
__device__ void mask(lib::ChannelVector<T, kWidth>& gradient, const lib::ChannelVector<T, kWidth>& y) {
  if constexpr (std::is_same_v<T, __half> && kWidth % 2 == 0) {
    SIMT_UNROLL
    for (int c = 0; c < kWidth; c += 2) {
      const std::uint32_t kept = lib::where_greater(simt::load_as<std::uint32_t>(y.values + c), 0);
      simt::store_as(gradient.values + c, simt::load_as<std::uint32_t>(gradient.values + c) & kept);
    }
  } else {
    SIMT_UNROLL
    for (int c = 0; c < kWidth; ++c)
      if (!(lib::to_f32(y.values[c]) > 0.0f)) gradient.values[c] = lib::from_f32<T>(0.0f);
  }
}

/// to[c] of block (x, y): the sum of rows [x, x + 1) * rows_of_block; of several blocks x, in slices of `channels` each.
template <class T, int kWidth, bool kRelu>
__global__ void __launch_bounds__(kThreads)
    bias_grad_blocks_kernel(const T* dy, const T* y, T* dx, float* __restrict__ to, unsigned rows,
                            unsigned rows_of_block, int channels, SIMT_GRID_CONST(Layout) layout, bool accumulate) {
  constexpr int kPitch = kThreads + (kWidth > 1 ? 32 / kWidth : 0);  // a warp adds up 32 channels in 32 banks
  using Table = float[kWidth][kPitch];
  SIMT_SHARED(Table, table);
  const int thread = static_cast<int>(threadIdx.x);
  const int first_channel = static_cast<int>(blockIdx.y) * layout.vectors * kWidth;
  const int channel = first_channel + thread % layout.vectors * kWidth;
  const int lane_row = thread / layout.vectors;
  const unsigned begin = blockIdx.x * rows_of_block;
  const unsigned end = rows - begin < rows_of_block ? rows : begin + rows_of_block;
  const auto step = static_cast<unsigned>(layout.rows);
  float sums[kWidth] = {};
  if (lane_row < layout.rows && channel < channels)
    for (unsigned first = begin + static_cast<unsigned>(lane_row); first < end; first += kBatch * step) {
      float batch[kWidth] = {};
      for (unsigned i = 0; i < kBatch && first + i * step < end; i += kAtOnce) {
        lib::ChannelVector<T, kWidth> gradients[kAtOnce] = {}, outputs[kAtOnce];
        const auto for_each_row = [&](auto visit) {
          SIMT_UNROLL
          for (unsigned j = 0; j < kAtOnce; ++j) {
            const unsigned row = first + (i + j) * step;
            if (row < end) visit(std::int64_t{row} * channels + channel, gradients[j], outputs[j]);
          }
        };
        for_each_row([&](std::int64_t at, auto& gradient, auto& output) {
          gradient = load_vector<T, kWidth>(dy + at);
          if constexpr (kRelu) output = load_vector<T, kWidth>(y + at);
        });
        if constexpr (kRelu)
          for_each_row([&](std::int64_t at, auto& gradient, const auto& output) {
            mask(gradient, output);
            lib::store_word(dx + at, simt::load_as<lib::VectorWord<T, kWidth>>(gradient.values));
          });
        SIMT_UNROLL
        for (int c = 0; c < kWidth; ++c) {
          const auto value = [&](int j) { return lib::to_f32(gradients[j].values[c]); };
          batch[c] += (value(0) + value(1)) + (value(2) + value(3));
        }
      }
      SIMT_UNROLL
      for (int c = 0; c < kWidth; ++c) sums[c] += batch[c];
    }
  SIMT_UNROLL
  for (int c = 0; c < kWidth; ++c) table[c][thread] = sums[c];
  __syncthreads();  // a channel's sum is over what many threads wrote
  for (int at = thread; at < layout.vectors * kWidth; at += kThreads) {
    if (first_channel + at >= channels) continue;
    float sum = 0;
    for (int row = 0; row < layout.rows; ++row) sum += table[at % kWidth][row * layout.vectors + at / kWidth];
    float& result = to[std::int64_t{blockIdx.x} * channels + first_channel + at];
    result = accumulate ? result + sum : sum;
  }
}

void grad(Stream& stream, const GradArgs& args) {
  check_args(args);
  if (args.channels == 0) return;
  const int channels = lib::narrow<int>("bias grad", "channels", args.channels);
  const auto rows = static_cast<unsigned>(lib::narrow<int>("bias grad", "rows", args.rows));
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_channel_width<T>(args.channels, {args.dy, args.y, args.dx}, [&](auto width) {
      const Layout layout(channels, width.value);
      const std::int64_t chunks = lib::ceil_div(channels, std::int64_t{layout.vectors} * width.value);
      const std::int64_t most = args.workspace ? std::max<std::int64_t>(kMostGradBlocks / chunks, 1) : 1;
      const std::int64_t wanted = std::clamp<std::int64_t>(args.rows / (std::int64_t{layout.rows} * kTurns), 1, most);
      const std::int64_t rows_of_block = std::max<std::int64_t>(lib::ceil_div(args.rows, wanted), 1);
      const std::int64_t blocks = std::max<std::int64_t>(lib::ceil_div(args.rows, rows_of_block), 1);
      auto* const slices = static_cast<float*>(args.workspace);
      const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(chunks)),
                                .block = dim3(kThreads)};
      lib::with_bool(args.y != nullptr, [&](auto relu) {
        simt::launch<bias_grad_blocks_kernel<T, width.value, relu.value>>(
            stream, config, static_cast<const T*>(args.dy), static_cast<const T*>(args.y), static_cast<T*>(args.dx),
            blocks > 1 ? slices : args.db, rows, static_cast<unsigned>(rows_of_block), channels, layout,
            blocks == 1 && args.accumulate);
      });
      if (blocks > 1)
        lib::sum_slices(stream, slices, static_cast<int>(blocks), channels, args.db, args.accumulate,
                        args.partial_sums);
    });
  });
}

}  // namespace

Variant blocks() {
  return {.name = "blocks",
          .add = rows().add,
          .grad = grad,
          .supports = lib::supports_cuda_floating,
          .computes = lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::bias
