// SPDX-License-Identifier: Apache-2.0
// Idea: a product of wgmma for each kernel position, whose operand A is the image itself, from another pixel on. A
//   vector of 8 channels of a pixel are 16 bytes, after which the next pixel comes; so eight pixels are a core of an
//   operand without a swizzle (simt::MatrixDescriptor). Rows are as long as those of the image: those at its right edge
//   are multiplied for nothing.
// Mapping: each block takes every gridDim.x-th image and 64 filters, of few images 32; each of two warpgroups every
//   second tile of 64 positions. Sums go through shared memory, because the elements of a window are in different
//   warps; then each thread pools four filters of a window.
// Traffic and bound: x is read once for these filters, w once a block; y and codes are written in whole sectors and
//   halves. Bound by shared memory, of which every product reads both operands, 100 of 128 rows for 10 x 10 outputs.
// Gains over the step before (3_resident_forward.cu): no fragment is loaded to registers; the next image is on its way
//   while this one is multiplied and pooled; a thread stores four neighbouring filters instead of two.
// Still slow because: tensor cores wait while a block pools, unless another block multiplies.
// Limits: sm_90; f16 and bf16; kernels of 3 x 3, stride 1; windows of 2 x 2; 32 inputs; filters a multiple of 32;
//   two images, 32 filters and the sums fit 96 KB. Else 4_wgmma_gathered.cu does it. An infinity in w times the
//   padding's zeros is NaN.

#include <algorithm>
#include <limits>

#include "kernels/lib/half_pairs.h"
#include "kernels/lib/reference.h"
#include "kernels/lib/variant.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/conv_relu_pool/mma.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"
#include "kernels/ops/conv_relu_pool/short_filters.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

namespace wgmma {
namespace {

using namespace resident;
using conv2d::Divisor;

constexpr int kManyFilters = 64, kFewFilters = 32;  // of a block
constexpr int kChannels = 32;                       // of x
constexpr int kPixelVectors = kChannels / kVector;
constexpr int kTaps = kKernel * kKernel;
constexpr int kTileRows = 64;
constexpr int kGroups = 2;  // warpgroups
constexpr int kThreads = 128 * kGroups;
constexpr int kThreadFilters = 4;  // that a thread pools
constexpr std::int64_t kBlocksOfMultiprocessor = 2;

/// w in shared memory, in vectors of 16 bytes: of a kernel position and 8 channels, those of all filters, then one of
/// nothing, so that neighbours in w hit other banks.
constexpr int column_of(int filters) { return filters + 1; }
constexpr int filter_vectors(int filters) { return kTaps * kPixelVectors * column_of(filters); }
/// Of a row of sums, in floats: the pairs of sums of four rows hit no bank twice.
constexpr int sum_pitch(int filters) { return filters + 8; }

struct Shape {
  PixelLists x;
  int batch, filters, windows, tiles;  // windows and tiles of an image
  Divisor windows_of_line;
};

/// w of the block's filters.
template <int kFilters, class T>
__device__ void store_filters(T* to, const T* w) {
  constexpr unsigned kVectors = kTaps * kPixelVectors;  // of a filter
  constexpr int kAtOnce = 5;                            // half of a thread's of 64 filters, all of 32
  lib::load_ahead<kAtOnce>(
      threadIdx.x, kFilters * kVectors, unsigned{kThreads},
      [&](unsigned i) { return simt::load_as<uint4>(w + i * kVector); },
      [&](unsigned i, const uint4& vector) {
        simt::store_as(to + (i % kVectors * column_of(kFilters) + i / kVectors) * kVector, vector);
      });
}

/// Of a warp: 16 rows of sums plus bias to shared memory.
template <int kFilters>
__device__ void store_sums(float* to, const float (&sums)[lib::kSumsOf64<kFilters>],
                           const float (&bias)[kFilters / 8][2]) {
  const simt::Position at = simt::mma_position_in_c(static_cast<int>(threadIdx.x) % 32, 0);
  to += at.row * sum_pitch(kFilters) + at.column;
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kFilters / 8; ++j) {
    SIMT_UNROLL_ON_GPU
    for (int half = 0; half < 2; ++half) {
      const float* pair = sums + 4 * j + 2 * half;
      simt::store_as(to + 8 * half * sum_pitch(kFilters) + 8 * j, float2{pair[0] + bias[j][0], pair[1] + bias[j][1]});
    }
  }
}

/// The maxima of the windows of `image`, of four filters each, and their codes.
template <int kFilters, class T>
__device__ void pool(const float* sums, const Shape& s, int image, int first_filter, T* y, std::uint8_t* codes) {
  constexpr unsigned kParts = kFilters / kThreadFilters;
  constexpr int kSumPitch = sum_pitch(kFilters);
  const auto thread = static_cast<unsigned>(threadIdx.x);
  const auto part = static_cast<int>(thread % kParts) * kThreadFilters;
  for (int window = static_cast<int>(thread / kParts); window < s.windows; window += kThreads / kParts) {
    const auto [down, across] = s.windows_of_line.divide(window);
    const float* const first = sums + (down * s.x.line + across) * kWindow * kSumPitch + part;
    const float* const rows[kWindow] = {first, first + s.x.line * kSumPitch};
    float best[kThreadFilters];
    unsigned code[kThreadFilters] = {};
    SIMT_UNROLL_ON_GPU
    for (int element = 0; element < kWindow * kWindow; ++element) {
      const float4 four = simt::load_as<float4>(rows[element / kWindow] + element % kWindow * kSumPitch);
      const float z[kThreadFilters] = {four.x, four.y, four.z, four.w};
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kThreadFilters; ++i) {
        if (element > 0 && !(z[i] > best[i] || z[i] != z[i])) continue;  // a NaN takes all, no number takes it back
        best[i] = z[i];
        code[i] = static_cast<unsigned>(element);
      }
    }
    unsigned packed = 0;
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kThreadFilters; ++i) packed |= (best[i] <= 0 ? kCutOff : code[i]) << 4 * i;
    const std::uint64_t upper = lib::relu_pair<T>(best[2], best[3]);
    const auto position = static_cast<unsigned>(image * s.windows + window);
    const std::uint64_t at =
        position * std::uint64_t{static_cast<unsigned>(s.filters)} + static_cast<unsigned>(first_filter + part);
    simt::store_as(y + at, upper << 32 | lib::relu_pair<T>(best[0], best[1]));  // a uint2 would be two stores
    simt::store_as(codes + at / 2, static_cast<std::uint16_t>(packed));
  }
}

template <class T, int kFilters>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_wgmma_forward_kernel(SIMT_GRID_CONST(Shape) s, const T* __restrict__ x, const T* __restrict__ w,
                                        const T* __restrict__ b, T* __restrict__ y, std::uint8_t* __restrict__ codes) {
  SIMT_DYNAMIC_SHARED(T, memory);  // w; twice x with its padding; sums
  constexpr int kFilterColumn = column_of(kFilters);
  T* const pixels = memory + filter_vectors(kFilters) * kVector;
  const int image_vectors = kPixelVectors * s.x.pitch;
  float* const all_sums = reinterpret_cast<float*>(pixels + 2 * image_vectors * kVector);
  const int first_filter = static_cast<int>(blockIdx.y) * kFilters;
  const int image_elements = s.x.pixels * kChannels;
  clear(pixels, 2 * image_vectors);
  __syncthreads();  // margins are cleared
  const auto start = [&](int image, int buffer) {
    if (image < s.batch)
      s.x.start_copy<kThreads>(pixels + buffer * image_vectors * kVector, x + std::int64_t{image} * image_elements,
                               kChannels);
  };
  int image = static_cast<int>(blockIdx.x), buffer = 0;
  start(image, buffer);
  store_filters<kFilters>(memory, w + std::int64_t{first_filter} * kTaps * kChannels);
  const int warp = static_cast<int>(threadIdx.x) / 32, group = lib::warpgroup_index();
  float bias[kFilters / 8][2];
  SIMT_UNROLL_ON_GPU
  for (int j = 0; j < kFilters / 8; ++j) {
    const T* const of_pair =
        b + first_filter + 8 * j + simt::mma_position_in_c(static_cast<int>(threadIdx.x) % 32, 0).column;
    bias[j][0] = lib::to_f32(of_pair[0]), bias[j][1] = lib::to_f32(of_pair[1]);
  }
  constexpr std::uint32_t kVectorBytes = kVector * sizeof(T);
  constexpr std::uint32_t kCoreBytes = 8 * kVectorBytes;
  const auto a_list = simt::MatrixDescriptor::without_swizzle(
      lib::shared_address(pixels), static_cast<std::uint32_t>(s.x.pitch) * kVectorBytes, kCoreBytes);
  const auto b_list =
      simt::MatrixDescriptor::without_swizzle(lib::shared_address(memory), kFilterColumn * kVectorBytes, kCoreBytes);
  for (; image < s.batch; image += static_cast<int>(gridDim.x), buffer = 1 - buffer) {
    async_wait<0>();
    lib::warpgroup_publish();
    __syncthreads();  // x and w are complete, the sums before are pooled, and nobody reads the x before
    start(image + static_cast<int>(gridDim.x), 1 - buffer);
    const auto a_image = a_list.after(buffer * image_vectors);
    for (int tile = group; tile < s.tiles; tile += kGroups) {
      float sums[lib::kSumsOf64<kFilters>] = {};
      lib::warpgroup_expose(sums);
      lib::warpgroup_fence();
      int at = tile * kTileRows;
      for_each_constant<kKernel>([&](auto row) {
        for_each_constant<kKernel>([&](auto column) {
          for_each_constant<kChannels / 16>([&](auto k) {
            lib::warpgroup_mma_m64k16<T, false, false>(
                sums, a_image.after(at + column + 2 * k * s.x.pitch),
                b_list.after(((row * kKernel + column) * kPixelVectors + 2 * k) * kFilterColumn));
          });
        });
        at += s.x.line;
      });
      lib::warpgroup_commit();
      lib::warpgroup_wait_for(sums);
      store_sums<kFilters>(all_sums + (tile * kTileRows + warp % 4 * 16) * sum_pitch(kFilters), sums, bias);
    }
    __syncthreads();  // all sums are there
    pool<kFilters>(all_sums, s, image, first_filter, y, codes);
  }
}

struct Sizes {
  std::int64_t line, tiles, pitch;

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + 2 * g.conv.padding),
        tiles(lib::ceil_div((g.out_height() * kWindow - 1) * line + g.out_width() * kWindow, kTileRows)),
        pitch(list_pitch(
            std::max((g.conv.in_height + 2 * g.conv.padding) * line, tiles * kTileRows + (kKernel - 1) * (line + 1)),
            kPixelVectors)) {}

  std::int64_t bytes(int filters) const {
    return 16 * (filter_vectors(filters) + 2 * kPixelVectors * pitch) + 4 * tiles * kTileRows * sum_pitch(filters);
  }
};

}  // namespace

bool forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (conv.kernel_height != kKernel || conv.kernel_width != kKernel || conv.stride != 1 || g.window != kWindow ||
      conv.in_channels != kChannels || conv.out_channels % kFewFilters != 0 || g.out_elements() == 0 ||
      conv.out_channels / kFewFilters > 65535 || g.out_positions() > std::numeric_limits<int>::max() ||
      args.x_dtype.value_or(args.dtype) != args.dtype)
    return false;
  const Sizes sizes(g);
  const auto is_aligned = [](const void* array) { return reinterpret_cast<std::uintptr_t>(array) % 16 == 0; };
  // Few images fill a GPU better by two blocks each.
  const bool many = conv.batch >= kMultiprocessors && conv.out_channels % kManyFilters == 0 &&
                    sizes.bytes(kManyFilters) <= kMostSharedBytes;
  const int filters = many ? kManyFilters : kFewFilters;
  if (sizes.bytes(filters) > kMostSharedBytes || !is_aligned(args.x) || !is_aligned(args.w) || !is_aligned(args.y) ||
      !is_aligned(args.codes))
    return false;
  const Shape shape{.x = PixelLists(g, sizes.line, sizes.pitch),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .filters = as_int(conv.out_channels),
                    .windows = as_int(g.out_height() * g.out_width()),
                    .tiles = as_int(sizes.tiles),
                    .windows_of_line = Divisor(as_int(g.out_width()))};
  const std::int64_t filter_blocks = conv.out_channels / filters;
  const std::int64_t blocks =
      std::min(conv.batch, std::max<std::int64_t>(1, kMultiprocessors * kBlocksOfMultiprocessor / filter_blocks));
  const simt::Config config{.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(filter_blocks)),
                            .block = dim3(kThreads),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes(filters))};
  lib::with_half(args.dtype, [&]<class T>(lib::Element<T>) {
    lib::with_bool(many, [&](auto is_many) {
      simt::launch<conv_relu_pool_wgmma_forward_kernel<T, is_many.value ? kManyFilters : kFewFilters>>(
          stream, config, shape, static_cast<const T*>(args.x), static_cast<const T*>(args.w),
          static_cast<const T*>(args.b), static_cast<T*>(args.y), args.codes);
    });
  });
  return true;
}

namespace {

void forward_of_any(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  if (args.geometry.out_elements() == 0 || forward(stream, args) || short_filters::forward(stream, args)) return;
  check_x_dtype(args.dtype, args.x_dtype);
  if (!gathered_forward(stream, args)) mma::unfused_forward(stream, args, conv2d::wgmma());
}

void backward_of_any(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  if (!args.dx && wgrad(stream, args)) return;
  // Before dx is enqueued, which dw must not wait for; a later fork takes its place.
  Stream& beside_dx = beside(stream, args.branch);
  if (!args.dx || !dgrad(stream, args)) return mma::backward(stream, args, conv2d::wgmma());
  BackwardArgs rest = args;
  rest.dx = nullptr;
  rest.branch = nullptr;
  if (!wgrad(beside_dx, rest)) mma::backward(beside_dx, rest, conv2d::wgmma());
}

}  // namespace
}  // namespace wgmma

Variant wgmma_windows() {
  Variant variant = mma_tiles();
  variant.name = "wgmma";
  variant.forward = wgmma::forward_of_any;
  variant.backward = wgmma::backward_of_any;
  variant.workspace_bytes = [](const Geometry& g) {
    return std::max(mma::workspace_bytes(g, conv2d::wgmma()), wgmma::wgrad_workspace_bytes(g));
  };
  variant.partial_sum_bytes = [](const Geometry& g) {
    return std::max(mma::partial_sum_bytes(g, conv2d::wgmma()), wgmma::wgrad_workspace_bytes(g));
  };
  variant.supports = lib::supports_hopper_half;
  return variant;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
