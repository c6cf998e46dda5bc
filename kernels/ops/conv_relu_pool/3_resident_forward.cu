// SPDX-License-Identifier: Apache-2.0
// Idea: a whole image, with a margin of zeros, and the filters of a block stay in shared memory (resident.cuh): all
//   kernel positions are read from the same image.
// Mapping: each block takes every gridDim.x-th image and 32 filters; each warp computes 8 windows at a time, in the
//   order in which a thread's accumulators are four elements of one window: row 8 q + r of a warp's 32 is element q of
//   window r.
// Traffic and bound: x is read once for 32 filters, w once a block; y and half a byte of code an output are written.
//   Bound by waiting for an image while other blocks compute, then by shared memory: four ldmatrix for eight products.
// Gains over the step before (3_mma_forward.cu): x comes to shared memory once, not once for each kernel position; no
//   addresses and bounds in the main loop; twice as many blocks.
// Still slow because: the next image is not on the way while one is multiplied; 25 windows leave a quarter of four
//   warps idle.
// Limits: f16 and bf16; windows of 2 x 2; kernels of 3 x 3; 32 or 64 inputs; an image and the filters of a block fit
//   96 KB. Else 3_mma_forward.cu does it. An infinity in w times the padding's zeros is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {
namespace {

using conv2d::Divisor;

constexpr int kFilters = 32;  // of a block
constexpr int kTiles = kFilters / 8;
constexpr std::int64_t kMostBlocks = 528;  // four for each multiprocessor of a large GPU
constexpr int kMostWarps = 4;
[[maybe_unused]] constexpr int kResidentBlocks = 4;  // for how many a multiprocessor must have registers

constexpr int kWarpWindows = 8;
constexpr int kWarpElements = 4;  // of each window

struct Shape {
  int batch, filters, windows;               // of an image
  int pixels, line, padding, padded_pixels;  // of x: positions, a row with padding
  int stride;
  Divisor width, windows_of_line;  // of x
};

template <class T>
struct alignas(2 * sizeof(T)) Pair {
  T elements[2];
};

/// A thread's outputs: of one window, channels 8 j and 8 j + 1 after its first.
struct WindowMaxima {
  struct Maximum {
    float value;
    int element;
  };
  Maximum maxima[kTiles][2] = {};

  using Bias = float[kTiles][2];

  /// That of the same channels; 0 beyond the last one.
  template <class T>
  __device__ static void load(Bias& bias, const T* b, int channel, int channels) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c)
        bias[j][c] = channel + 8 * j + c < channels ? lib::to_f32(b[channel + 8 * j + c]) : 0.0f;
    }
  }

  /// sums[i][j][2 h + c] is element 2 i + h of channel 8 j + c.
  __device__ void take(const float (&sums)[2][kTiles][4], const Bias& bias) {
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c) {
        Maximum& best = maxima[j][c];
        SIMT_UNROLL_ON_GPU
        for (int element = 0; element < kWarpElements; ++element) {
          const float z = sums[element / 2][j][element % 2 * 2 + c] + bias[j][c];
          const bool takes = element == 0 || z > best.value || z != z;  // a NaN takes all, and no number takes it back
          if (takes) best = {z, element};
        }
      }
    }
  }

  template <class T>
  __device__ void store(T* y, std::uint8_t* codes, std::int64_t window, int first_channel, int channels) const {
    T* const outputs = y + window * channels;
    const bool in_pairs = channels % 2 == 0 && reinterpret_cast<std::uintptr_t>(y) % sizeof(Pair<T>) == 0;
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kTiles; ++j) {
      const int channel =
          first_channel + 8 * j;  // even: its code and that of its neighbour are a byte of this thread's
      if (channel >= channels) continue;
      Pair<T> pair;
      unsigned code[2];
      SIMT_UNROLL_ON_GPU
      for (int c = 0; c < 2; ++c) {
        const Maximum& best = maxima[j][c];
        const bool cut_off = best.value <= 0 || channel + c >= channels;
        pair.elements[c] = lib::from_f32<T>(cut_off ? 0.0f : best.value);
        code[c] = cut_off ? kCutOff : static_cast<unsigned>(best.element);
      }
      if (in_pairs) {
        simt::store_as(outputs + channel, pair);
      } else {
        outputs[channel] = pair.elements[0];
        if (channel + 1 < channels) outputs[channel + 1] = pair.elements[1];
      }
      codes[window * ((channels + 1) / 2) + channel / 2] = packed_codes(code[0], code[1]);
    }
  }
};

template <class T, int kChannels>
__global__ void __launch_bounds__(32 * kMostWarps, kResidentBlocks)
    conv_relu_pool_resident_forward_kernel(SIMT_GRID_CONST(Shape) s, const T* __restrict__ x, const T* __restrict__ w,
                                           const T* __restrict__ b, T* __restrict__ y,
                                           std::uint8_t* __restrict__ codes) {
  SIMT_DYNAMIC_SHARED(T, memory);  // x with its padding; then w
  constexpr int kPitch = pitch_of(kChannels);
  constexpr int kWeights = kKernel * kKernel * kChannels;  // of a filter
  constexpr int kFilterPitch = pitch_of(kWeights);
  constexpr int kBytes = static_cast<int>(sizeof(T));
  T* const filters = memory + s.padded_pixels * kPitch;
  const int threads = static_cast<int>(blockDim.x);
  const int first_filter = static_cast<int>(blockIdx.y) * kFilters;
  clear(memory, s.padded_pixels * kPitch / kVector);
  for (int i = static_cast<int>(threadIdx.x); i < kFilters * (kWeights / kVector); i += threads) {
    const int filter = i / (kWeights / kVector);
    const int weight = i % (kWeights / kVector) * kVector;
    T* to = filters + filter * kFilterPitch + weight;
    if (first_filter + filter < s.filters)
      async_copy16(to, w + std::int64_t{first_filter + filter} * kWeights + weight);
    else
      simt::store_as(to, uint4{});
  }
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const simt::Position in_a = simt::matrices_down(lane);
  const simt::Position in_b = simt::matrices_across(lane);
  const lib::MatrixRow b_row(filters + in_b.row * kFilterPitch + in_b.column);
  const int channel = first_filter + simt::mma_position_in_c(lane, 0).column;
  WindowMaxima::Bias bias;
  WindowMaxima::load(bias, b, channel, s.filters);
  for (int image = static_cast<int>(blockIdx.x); image < s.batch; image += static_cast<int>(gridDim.x)) {
    __syncthreads();  // margins are cleared, and no warp still reads the image before
    const T* const x_here = x + std::int64_t{image} * s.pixels * kChannels;
    for (int i = static_cast<int>(threadIdx.x); i < s.pixels * (kChannels / kVector); i += threads) {
      const auto [row, column] = s.width.divide(i / (kChannels / kVector));
      T* to = memory + ((row + s.padding) * s.line + column + s.padding) * kPitch;
      async_copy16(to + i % (kChannels / kVector) * kVector, x_here + i * kVector);
    }
    async_commit();
    async_wait<0>();
    __syncthreads();  // x and w are complete
    for (int first = static_cast<int>(threadIdx.x) / 32 * kWarpWindows; first < s.windows; first += threads / 4) {
      const auto a_row = [&](int i) {
        const int of_warp = 16 * i + in_a.row;
        const int window = first + of_warp % kWarpWindows;
        const auto [down, across] = s.windows_of_line.divide(window < s.windows ? window : 0);
        const int element = of_warp / kWarpWindows;
        const int pixel = ((2 * down + element / 2) * s.line + 2 * across + element % 2) * s.stride;
        return lib::MatrixRow(memory + pixel * kPitch + in_a.column);
      };
      lib::MatrixRow a_rows[2] = {a_row(0), a_row(1)};
      float sums[2][kTiles][4] = {};
      for_each_constant<kKernel>([&](auto row) {
        for_each_constant<kKernel * kChannels / 16>(
            [&](auto step) {  // pixels of a row are kPitch apart, in w kChannels
              constexpr int kOfA = step / (kChannels / 16) * kPitch + step % (kChannels / 16) * 16;
              constexpr int kOfB = row * kKernel * kChannels + step * 16;
              std::uint32_t b_fragments[kTiles / 2][4];
              b_row.template load<kOfB * kBytes>(b_fragments[0]);
              b_row.template load<(kOfB + 16 * kFilterPitch) * kBytes>(b_fragments[1]);
              SIMT_UNROLL_ON_GPU
              for (int i = 0; i < 2; ++i) {
                std::uint32_t a[4];
                a_rows[i].template load<kOfA * kBytes>(a);
                multiply_add<T>(sums[i], a, b_fragments);
              }
            });
        SIMT_UNROLL_ON_GPU
        for (lib::MatrixRow& a_of_row : a_rows) a_of_row = a_of_row + s.line * kPitch * kBytes;
      });
      const int window = first + lane / 4;
      WindowMaxima maxima;
      maxima.take(sums, bias);
      if (window < s.windows) maxima.store(y, codes, std::int64_t{image} * s.windows + window, channel, s.filters);
    }
  }
}

struct Sizes {
  std::int64_t line, padded_pixels, bytes;

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + 2 * g.conv.padding),
        padded_pixels((g.conv.in_height + 2 * g.conv.padding) * line),
        bytes(2 * (padded_pixels * pitch_of(g.conv.in_channels) + kFilters * pitch_of(g.conv.filter_elements()))) {}
};

std::int64_t filter_blocks(const Geometry& g) { return lib::ceil_div(g.conv.out_channels, kFilters); }

}  // namespace

bool forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  const Sizes sizes(g);
  if (conv.kernel_height != kKernel || conv.kernel_width != kKernel || g.window != kWindow ||
      (conv.in_channels != 32 && conv.in_channels != 64) || filter_blocks(g) > 65535 ||
      sizes.bytes > kMostSharedBytes ||
      !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.x), conv.in_channels) ||
      !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.w), conv.in_channels))
    return false;
  const std::int64_t windows = g.out_height() * g.out_width();
  const Shape shape{.batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .filters = as_int(conv.out_channels),
                    .windows = as_int(windows),
                    .pixels = as_int(conv.in_height * conv.in_width),
                    .line = as_int(sizes.line),
                    .padding = as_int(conv.padding),
                    .padded_pixels = as_int(sizes.padded_pixels),
                    .stride = as_int(conv.stride),
                    .width = Divisor(as_int(conv.in_width)),
                    .windows_of_line = Divisor(as_int(g.out_width()))};
  const std::int64_t warps = std::min<std::int64_t>(lib::ceil_div(windows, kWarpWindows), kMostWarps);
  const std::int64_t blocks = std::min(conv.batch, std::max<std::int64_t>(1, kMostBlocks / filter_blocks(g)));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(filter_blocks(g))),
                            .block = dim3(static_cast<unsigned>(32 * warps)),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes)};
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto* x = static_cast<const T*>(args.x);
    const auto* w = static_cast<const T*>(args.w);
    const auto* b = static_cast<const T*>(args.b);
    auto* y = static_cast<T*>(args.y);
    if (conv.in_channels == 32)
      simt::launch<conv_relu_pool_resident_forward_kernel<T, 32>>(stream, config, shape, x, w, b, y, args.codes);
    else
      simt::launch<conv_relu_pool_resident_forward_kernel<T, 64>>(stream, config, shape, x, w, b, y, args.codes);
  });
  return true;
}

}  // namespace resident

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
