// SPDX-License-Identifier: Apache-2.0
// Idea: x and dz of a whole image stay in shared memory (resident.cuh), dw and db in registers for many images.
// Mapping: each block takes a slice of the images, 64 filters and 32 inputs; each warp one kernel position for them;
//   the first warp multiplies by ones, too, for db. A second kernel adds up the slices (lib/split_k.h).
// Traffic and bound: dy and codes are read once for 32 inputs, x once for 64 filters. Bound by waiting for an image,
//   then by shared memory: six ldmatrix for sixteen products; with few images, by adding up slices.
// Gains over the step before (3_mma_backward.cu): one computation of dz serves all kernel positions; no addresses and
//   bounds in the main loop, but margins of zeros in shared memory.
// Still slow because: the next image is not on the way while one is multiplied; all warps load the same dz; small
//   batches fill half a GPU.
// Limits: f16 and bf16; at most 16 kernel positions; windows of 2 x 2; channels in multiples of 8; dz and x of a block
//   fit 96 KB. Else 3_mma_backward.cu does it. An infinity in dy or x times a zero is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {
namespace {

using conv2d::Divisor;

constexpr int kFilters = 64;  // of a block
constexpr int kPitch = pitch_of(kFilters);
constexpr std::int64_t kMostTaps = 16;
constexpr std::int64_t kMostBlocks = 128;  // one for nearly each multiprocessor of a large GPU

struct Shape {
  GradientImage gradient;
  int batch, images_of_slice, filters, inputs;
  int pixels, line, padding, padded_pixels, stride;  // of x: positions, a row with padding
  Divisor width, kernel_width, gradient_width;       // of x; of dz
  int taps, positions;                               // of dz
};

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

template <class T>
__global__ void __launch_bounds__(32 * kMostTaps)
    conv_relu_pool_resident_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                         const T* __restrict__ x, float* __restrict__ dw_slices,
                                         float* __restrict__ db_slices) {
  SIMT_DYNAMIC_SHARED(T, memory);  // dz; x with its padding, rows of 32 inputs; where x is for each row of dz, in bytes
  const GradientImage& g = s.gradient;
  constexpr int kBytes = static_cast<int>(sizeof(T));
  T* const pixels = memory + g.rows * kPitch;
  int* const pixel_of_row = reinterpret_cast<int*>(pixels + s.padded_pixels * kInputPitch);
  const int first_input = static_cast<int>(blockIdx.y) * kInputs;
  const int first_filter = static_cast<int>(blockIdx.z) * kFilters;
  constexpr int kVectors = kInputs / kVector;
  clear(memory, (g.rows * kPitch + s.padded_pixels * kInputPitch) / kVector);
  for (int i = static_cast<int>(threadIdx.x); i < g.rows; i += static_cast<int>(blockDim.x)) {
    const auto [row, column] = s.gradient_width.divide(i);
    pixel_of_row[i] = i < s.positions ? (row * s.line + column) * s.stride * kInputPitch * kBytes : 0;  // then dz is 0
  }
  const int tap = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto [kernel_row, kernel_column] = s.kernel_width.divide(tap);
  const simt::Position in_a = simt::matrices_across(lane);
  const simt::Position in_b = simt::matrices_down(lane);
  const lib::MatrixRow first_a(memory + in_a.row * kPitch + in_a.column);
  const lib::MatrixRow b_row(pixels + (kernel_row * s.line + kernel_column) * kInputPitch + in_b.column);
  const bool sums_bias = tap == 0 && blockIdx.y == 0;
  const std::uint32_t ones = lib::pair_of<T>(1.0f, 1.0f);
  float sums[kFilters / 16][kInputs / 8][4] = {};
  float bias_sums[kFilters / 16][4] = {};
  const int begin = static_cast<int>(blockIdx.x) * s.images_of_slice;
  const int end = s.batch - begin < s.images_of_slice ? s.batch : begin + s.images_of_slice;
  for (int image = begin; image < end; ++image) {
    __syncthreads();  // margins are cleared, and no warp still reads the image before
    for (int i = static_cast<int>(threadIdx.x); i < s.pixels * kVectors; i += static_cast<int>(blockDim.x)) {
      const int input = i % kVectors * kVector;
      const int pixel = i / kVectors;
      int at = pixel;
      if (s.padding > 0) {
        const auto [row, column] = s.width.divide(pixel);
        at = (row + s.padding) * s.line + column + s.padding;
      }
      T* to = pixels + at * kInputPitch + input;
      if (first_input + input < s.inputs)
        async_copy16(to, x + (std::int64_t{image} * s.pixels + pixel) * s.inputs + first_input + input);
    }
    async_commit();
    store_gradient<kFilters>(memory, g, dz, image, first_filter);
    async_wait<0>();
    __syncthreads();  // x and dz are complete
    lib::MatrixRow a_row = first_a;
    for (int k = 0; k < g.rows; k += 16, a_row = a_row + 16 * kPitch * kBytes) {
      std::uint32_t a[kFilters / 16][4], b[kInputs / 16][4];
      load_columns<0>(b, b_row + pixel_of_row[k + in_b.row]);
      for_each_constant<kFilters / 16>([&](auto i) {
        a_row.template load_trans<16 * i * kBytes>(a[i]);
        multiply_add<T>(sums[i], a[i], b);
      });
      if (!sums_bias) continue;
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kFilters / 16; ++i) lib::mma_m16n8k16<T>(bias_sums[i], a[i], ones, ones);
    }
  }
  const std::int64_t filter = std::int64_t{blockIdx.x} * s.filters + first_filter;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < kFilters / 16; ++i) {
    for_each_pair(sums[i], lane, [&](int row, int input, float even, float odd) {
      if (first_filter + 16 * i + row >= s.filters || first_input + input >= s.inputs) return;
      float* to = dw_slices + ((filter + 16 * i + row) * s.taps + tap) * s.inputs + first_input + input;
      simt::store_as(to, float2{even, odd});
    });
    for (int e = 0; sums_bias && e < 4; e += 2) {
      const simt::Position at = simt::mma_position_in_c(lane, e);
      if (at.column == 0 && first_filter + 16 * i + at.row < s.filters)
        db_slices[filter + 16 * i + at.row] = bias_sums[i][e];
    }
  }
}

struct Sizes {
  std::int64_t positions, rows, line, padded_pixels, bytes;

  explicit Sizes(const Geometry& g)
      : positions(g.out_height() * g.out_width() * g.window * g.window),
        rows(lib::ceil_div(positions, 16) * 16),
        line(g.conv.in_width + 2 * g.conv.padding),
        padded_pixels((g.conv.in_height + 2 * g.conv.padding) * line),
        bytes(2 * (rows * pitch_of(kFilters) + padded_pixels * kInputPitch) + 4 * rows) {}
};

std::int64_t filter_blocks(const Geometry& g) { return lib::ceil_div(g.conv.out_channels, kFilters); }

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.taps() <= kMostTaps && conv.in_channels > 0 && conv.out_channels > 0 && conv.in_channels % kVector == 0 &&
         conv.out_channels % kVector == 0 && g.window == kWindow && input_blocks(g) <= 65535 &&
         filter_blocks(g) <= 65535 && Sizes(g).bytes <= kMostSharedBytes;
}

std::int64_t most_slices(const Geometry& g) {
  return std::max<std::int64_t>(1, kMostBlocks / (filter_blocks(g) * input_blocks(g)));
}

std::int64_t images_of_slice(const Geometry& g) {
  return std::max<std::int64_t>(1, lib::ceil_div(g.conv.batch, most_slices(g)));
}

}  // namespace

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  if (!knows(g)) return 0;
  const std::int64_t slices = std::clamp<std::int64_t>(g.conv.batch, 1, most_slices(g));
  return static_cast<std::size_t>(slices * g.conv.out_channels * (g.conv.filter_elements() + 1)) * sizeof(float);
}

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.x), conv.in_channels)) return false;
  const Sizes sizes(g);
  const std::int64_t width = g.out_width() * kWindow;
  const Shape shape{.gradient = gradient_image(g, width, sizes.rows, 0),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .images_of_slice = as_int(images_of_slice(g)),
                    .filters = as_int(conv.out_channels),
                    .inputs = as_int(conv.in_channels),
                    .pixels = as_int(conv.in_height * conv.in_width),
                    .line = as_int(sizes.line),
                    .padding = as_int(conv.padding),
                    .padded_pixels = as_int(sizes.padded_pixels),
                    .stride = as_int(conv.stride),
                    .width = Divisor(as_int(conv.in_width)),
                    .kernel_width = Divisor(as_int(conv.kernel_width)),
                    .gradient_width = Divisor(as_int(width)),
                    .taps = as_int(conv.taps()),
                    .positions = as_int(sizes.positions)};
  const std::int64_t slices = std::max<std::int64_t>(1, lib::ceil_div(conv.batch, images_of_slice(g)));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(slices), static_cast<unsigned>(input_blocks(g)),
                                         static_cast<unsigned>(filter_blocks(g))),
                            .block = dim3(static_cast<unsigned>(32 * conv.taps())),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes)};
  auto* dw_slices = static_cast<float*>(args.workspace);
  float* db_slices = dw_slices + slices * conv.weight_elements();
  bool launched = false;
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    const auto dz = pooled_gradient<T>(args);
    if (!dz.aligned) return;
    launched = true;
    lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
    simt::launch<conv_relu_pool_resident_wgrad_kernel<T>>(stream, config, shape, dz, static_cast<const T*>(args.x),
                                                          dw_slices, db_slices);
  });
  if (!launched) return false;
  lib::sum_slices(stream, static_cast<int>(slices), {dw_slices, conv.weight_elements(), args.dw},
                  {db_slices, conv.out_channels, args.db}, args.accumulate, args.partial_sums);
  return true;
}

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
