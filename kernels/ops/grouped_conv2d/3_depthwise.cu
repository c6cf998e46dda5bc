// SPDX-License-Identifier: Apache-2.0
// Idea: depthwise, channels do not mix: a thread takes the neighbouring channels that one 16-byte access moves, and
//   sums in registers. The weights of its channels lie kernel positions apart: the block transposes them in shared
//   memory once, and of a 3 x 3 kernel each thread keeps them in registers.
// Mapping: a block takes up to 128 channels, blockIdx.y, and every gridDim.x-th group of positions; threadIdx.x is the
//   vector of channels, threadIdx.y the position. dgrad is the same gather, from dy (taps.cuh). wgrad: block x takes a
//   slice of the positions; its threads add up all 9 weights of their channels (of other kernels one, blockIdx.z),
//   then over threadIdx.y in shared memory; slices are added up at the end (lib/split_k.h).
// Traffic and bound: operand and result once from memory, the operand up to 9 times from the caches; bound by memory
//   and, where rows are short, by issuing loads and conversions.
// Gains over the step before: a load serves 4 or 8 products, and touches whole sectors.
// Still slow because: each result loads all the inputs under the kernel; a thread that computes neighbours of a row
//   could keep what they share.
// Limits: of other geometries, and kernels whose weights do not fit shared memory, the direct variant computes the pass.

#include <algorithm>
#include <type_traits>

#include "kernels/lib/channel_vector.h"
#include "kernels/lib/element.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv2d/epilogue.cuh"
#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"
#include "kernels/ops/grouped_conv2d/taps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::grouped_conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace {

constexpr int kThreads = 256;
constexpr int kMostChannels = 128;  // of a block
constexpr int kPadding = 8;         // floats between rows of shared memory, so that columns use different banks
constexpr int kMostTaps = 48 * 1024 / ((kMostChannels + kPadding) * static_cast<int>(sizeof(float)));
constexpr std::int64_t kPositionsOfSlice = 64;  // at least, in wgrad
constexpr std::int64_t kWantedBlocks = 512;     // of wgrad

/// Equal tiles of channels: `columns` threads, each with a vector, in each of `tiles` blocks.
struct Tiles {
  int tiles, columns;

  Tiles(int channels, int width) {
    const int vectors = channels / width;
    tiles = (vectors * width + kMostChannels - 1) / kMostChannels;
    columns = (vectors + tiles - 1) / tiles;
  }
  dim3 block() const { return {static_cast<unsigned>(columns), static_cast<unsigned>(kThreads / columns)}; }
};

/// The channels [first, first + count) of this block.
struct ChannelsOfBlock {
  int first, count;
  __device__ ChannelsOfBlock(int channels, int width) {
    const int most = static_cast<int>(blockDim.x) * width;
    first = static_cast<int>(blockIdx.y) * most;
    count = channels - first < most ? channels - first : most;
  }
};

struct Position {
  int n, row, col;
  __device__ Position(int index, int height, int width) {
    const int line = index / width;
    col = index - line * width;
    n = line / height;
    row = line - n * height;
  }
};

template <int kWidth>
__device__ inline void add_product(float (&sums)[kWidth], const float (&x)[kWidth], const float (&y)[kWidth]) {
  SIMT_UNROLL
  for (int j = 0; j < kWidth; ++j) sums[j] += x[j] * y[j];
}

/// kSide: of a square kernel; 0: any kernel, known at run time only.
template <class T, int kWidth, int kSide, class Axis, class E>
__global__ void grouped_conv2d_gather_depthwise_kernel(SIMT_GRID_CONST(DepthwisePass<Axis>) pass,
                                                       const T* __restrict__ operand, const T* __restrict__ w,
                                                       T* __restrict__ result, E epilogue) {
  SIMT_DYNAMIC_SHARED(float, weights);  // [taps][pitch]
  const ChannelsOfBlock channels(pass.channels, kWidth);
  const int pitch = static_cast<int>(blockDim.x) * kWidth + kPadding;
  const int taps = kSide ? kSide * kSide : pass.taps();
  for (unsigned i : simt::block_range(0, static_cast<unsigned>(channels.count * taps))) {
    const int channel = static_cast<int>(i) / taps;
    weights[(static_cast<int>(i) - channel * taps) * pitch + channel] =
        lib::to_f32(w[std::int64_t{channels.first} * taps + i]);
  }
  __syncthreads();  // each thread reads the weights of its channels, which others wrote
  const int mine = static_cast<int>(threadIdx.x) * kWidth;
  if (mine >= channels.count) return;
  float kept[kSide ? kSide * kSide : 1][kWidth];
  if constexpr (kSide > 0) {
    SIMT_UNROLL
    for (int tap = 0; tap < kSide * kSide; ++tap) lib::load_channels(weights + tap * pitch + mine, kept[tap]);
  }
  float bias[kWidth] = {};
  if constexpr (!std::is_same_v<E, conv2d::NoEpilogue>)
    if (epilogue.bias) {
      SIMT_UNROLL
      for (int j = 0; j < kWidth; ++j) bias[j] = lib::to_f32(epilogue.bias[channels.first + mine + j]);
    }
  const int positions = static_cast<int>(pass.positions());
  const int step = static_cast<int>(gridDim.x * blockDim.y);
  for (int index = static_cast<int>(blockIdx.x * blockDim.y + threadIdx.y); index < positions; index += step) {
    const Position at(index, pass.height, pass.width);
    const T* image = operand + std::int64_t{at.n} * pass.operand_height * pass.operand_width * pass.channels;
    float sums[kWidth];
    SIMT_UNROLL
    for (int j = 0; j < kWidth; ++j) sums[j] = bias[j];
    const auto add_row = [&](int kh, auto add_columns) {
      const int row = pass.rows.source(at.row, kh);
      if (row < 0) return;
      const T* line = image + std::int64_t{row} * pass.operand_width * pass.channels + channels.first + mine;
      add_columns([&](int kw, const float* here) {
        const int col = pass.cols.source(at.col, kw);
        if (col < 0) return;
        float values[kWidth];
        lib::load_channels(line + col * pass.channels, values);
        for (int j = 0; j < kWidth; ++j) sums[j] += values[j] * here[j];
      });
    };
    if constexpr (kSide > 0) {
      SIMT_UNROLL_ON_GPU
      for (int kh = 0; kh < kSide; ++kh)
        add_row(kh, [&](auto add) {
          SIMT_UNROLL_ON_GPU
          for (int kw = 0; kw < kSide; ++kw) add(kw, kept[kh * kSide + kw]);
        });
    } else {
      for (int kh = 0; kh < pass.kernel_height; ++kh)
        add_row(kh, [&](auto add) {
          for (int kw = 0; kw < pass.kernel_width; ++kw)
            add(kw, weights + (kh * pass.kernel_width + kw) * pitch + mine);
        });
    }
    if (epilogue.relu) {
      SIMT_UNROLL
      for (int j = 0; j < kWidth; ++j) sums[j] = epilogue.clamped(sums[j]);
    }
    lib::store_channels(result + std::int64_t{index} * pass.channels + channels.first + mine, sums);
  }
}

/// To shared memory, four at a time.
template <int kWidth>
__device__ inline void store_partial(float* to, const float (&sums)[kWidth]) {
  if constexpr (kWidth == 1) {
    *to = sums[0];
  } else {
    SIMT_UNROLL
    for (int j = 0; j < kWidth; j += 4)
      simt::store_as<float4>(to + j, make_float4(sums[j], sums[j + 1], sums[j + 2], sums[j + 3]));
  }
}

/// Partial sums of slice blockIdx.x, in the layout of dw. kSide: as above; 0: of one kernel position, blockIdx.z.
template <class T, int kWidth, int kSide>
__global__ void grouped_conv2d_wgrad_depthwise_kernel(SIMT_GRID_CONST(DepthwisePass<ForwardAxis>) pass,
                                                      const T* __restrict__ x, const T* __restrict__ dy,
                                                      float* __restrict__ slices, int positions_of_slice) {
  constexpr int kTaps = kSide ? kSide * kSide : 1;
  SIMT_SHARED(float[kThreads * kWidth], partial);                 // [threads of a column][channels of the block]
  SIMT_SHARED(float[kSide ? kTaps * kMostChannels : 1], totals);  // [channels][taps], to write in one go
  const ChannelsOfBlock channels(pass.channels, kWidth);
  const int taps = pass.taps();
  const int mine = static_cast<int>(threadIdx.x) * kWidth;
  const int positions = static_cast<int>(pass.positions());
  const int begin = static_cast<int>(blockIdx.x) * positions_of_slice;
  const int end = positions - begin < positions_of_slice ? positions : begin + positions_of_slice;
  float sums[kTaps][kWidth] = {};
  for (int index = begin + static_cast<int>(threadIdx.y); mine < channels.count && index < end;
       index += static_cast<int>(blockDim.y)) {
    const Position at(index, pass.height, pass.width);
    const T* image = x + std::int64_t{at.n} * pass.operand_height * pass.operand_width * pass.channels;
    float gradient[kWidth];
    lib::load_channels(dy + std::int64_t{index} * pass.channels + channels.first + mine, gradient);
    SIMT_UNROLL_ON_GPU
    for (int t = 0; t < kTaps; ++t) {
      const int tap = kSide ? t : static_cast<int>(blockIdx.z);
      const int kh = tap / (kSide ? kSide : pass.kernel_width);
      const int row = pass.rows.source(at.row, kh);
      const int col = pass.cols.source(at.col, tap - kh * (kSide ? kSide : pass.kernel_width));
      if (row < 0 || col < 0) continue;
      float values[kWidth];
      lib::load_channels(image + (std::int64_t{row} * pass.operand_width + col) * pass.channels + channels.first + mine,
                         values);
      add_product(sums[t], values, gradient);
    }
  }
  float* const to = slices + (std::int64_t{blockIdx.x} * pass.channels + channels.first) * taps;
  SIMT_UNROLL_ON_GPU
  for (int t = 0; t < kTaps; ++t) {
    if (mine < channels.count) store_partial(partial + static_cast<int>(threadIdx.y) * channels.count + mine, sums[t]);
    __syncthreads();  // a channel's sum takes numbers of every row of threads
    for (unsigned channel : simt::block_range(0, static_cast<unsigned>(channels.count))) {
      float sum = 0;
      for (unsigned r = 0; r < blockDim.y; ++r) sum += partial[r * static_cast<unsigned>(channels.count) + channel];
      if constexpr (kSide > 0)
        totals[channel * kTaps + static_cast<unsigned>(t)] = sum;
      else
        to[channel * static_cast<unsigned>(taps) + blockIdx.z] = sum;
    }
    __syncthreads();  // the next kernel position overwrites `partial`; after the last one, `totals` is complete
  }
  if constexpr (kSide > 0)
    for (unsigned i : simt::block_range(0, static_cast<unsigned>(channels.count * kTaps))) to[i] = totals[i];
}

bool is_for_us(const Geometry& g) { return g.is_depthwise() && g.taps() <= kMostTaps; }

/// Calls visit(side): the kernels for 3 x 3, or for any kernel.
template <class Visit>
void with_side(const Geometry& g, Visit visit) {
  if (g.kernel_height == 3 && g.kernel_width == 3) return visit(std::integral_constant<int, 3>());
  visit(std::integral_constant<int, 0>());
}

template <class T, class Axis, class E>
void enqueue_gather(Stream& stream, const Geometry& g, const DepthwisePass<Axis>& pass, const T* operand, const T* w,
                    T* result, const E& epilogue) {
  lib::with_channel_width<T>(g.in_channels, {operand, result}, [&](auto width) {
    with_side(g, [&](auto side) {
      const Tiles tiles(pass.channels, width.value);
      simt::Config config{.block = tiles.block()};
      const auto positions = static_cast<std::size_t>(pass.positions());
      const std::size_t blocks = (positions + config.block.y - 1) / config.block.y;
      // Each thread takes several positions where there are enough: its weights serve them all.
      const std::size_t most = simt::grid_for(stream, static_cast<std::size_t>(g.in_elements())).grid.x;
      config.grid = dim3(static_cast<unsigned>(std::max<std::size_t>(1, std::min(blocks, most))),
                         static_cast<unsigned>(tiles.tiles));
      config.shared_bytes =
          static_cast<std::size_t>(g.taps() * (tiles.columns * width.value + kPadding)) * sizeof(float);
      simt::launch<grouped_conv2d_gather_depthwise_kernel<T, width.value, side.value, Axis, E>>(
          stream, config, pass, operand, w, result, epilogue);
    });
  });
}

void forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_forward(stream, args);
  if (g.out_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    enqueue_gather<T>(stream, g, forward_pass(g), static_cast<const T*>(args.x), static_cast<const T*>(args.w),
                      static_cast<T*>(args.y), conv2d::Epilogue<T>(args));
  });
}

void dgrad(Stream& stream, const DgradArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_dgrad(stream, args);
  if (g.in_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    enqueue_gather<T>(stream, g, dgrad_pass(g), static_cast<const T*>(args.dy), static_cast<const T*>(args.w),
                      static_cast<T*>(args.dx), conv2d::NoEpilogue{});
  });
}

/// Slices of the positions of y: the more channels, the fewer.
std::int64_t wanted_slices(const Geometry& g) {
  const std::int64_t tiles = lib::ceil_div(std::max<std::int64_t>(g.in_channels, 1), kMostChannels);
  return std::max<std::int64_t>(1, kWantedBlocks / tiles);
}

std::int64_t chunks_of(const Geometry& g) {
  return lib::ceil_div(g.batch * g.out_height() * g.out_width(), kPositionsOfSlice);
}

std::size_t workspace_bytes(const Geometry& g) {
  if (!is_for_us(g)) return 0;
  return static_cast<std::size_t>(lib::max_slices(chunks_of(g), wanted_slices(g), 1) * g.weight_elements()) *
         sizeof(float);
}

void wgrad(Stream& stream, const WgradArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_wgrad(stream, args);
  if (g.weight_elements() == 0) return;
  lib::check_pointer("grouped_conv2d wgrad", "workspace", args.workspace);
  auto* const partial_sums = static_cast<float*>(args.workspace);
  const DepthwisePass<ForwardAxis> pass = forward_pass(g);
  const std::int64_t chunks = chunks_of(g);
  const int slices = lib::slices_of(chunks, wanted_slices(g), 1);
  const int positions_of_slice = static_cast<int>(lib::ceil_div(chunks, slices) * kPositionsOfSlice);
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    const T* x = static_cast<const T*>(args.x);
    const T* dy = static_cast<const T*>(args.dy);
    lib::with_channel_width<T>(g.in_channels, {x, dy}, [&](auto width) {
      with_side(g, [&](auto side) {
        const Tiles tiles(pass.channels, width.value);
        const simt::Config config{.grid = dim3(static_cast<unsigned>(slices), static_cast<unsigned>(tiles.tiles),
                                               static_cast<unsigned>(side.value ? 1 : g.taps())),
                                  .block = tiles.block()};
        simt::launch<grouped_conv2d_wgrad_depthwise_kernel<T, width.value, side.value>>(
            stream, config, pass, x, dy, partial_sums, positions_of_slice);
      });
    });
  });
  lib::sum_slices(stream, partial_sums, slices, g.weight_elements(), args.dw, args.accumulate, args.partial_sums);
}

}  // namespace

Variant depthwise() {
  return {"depthwise", forward, dgrad, wgrad, workspace_bytes, lib::supports_cuda_floating, lib::is_floating};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
