// SPDX-License-Identifier: Apache-2.0
// Idea: dw of a kernel position is a product of wgmma, of dz transposed and x from another pixel on. Shared memory has
//   both as lists of positions, one for each vector of 8 channels; so eight positions are a core of an operand that is
//   transposed, without a swizzle (simt::MatrixDescriptor), from whichever position on. K are the positions of dz, in
//   rows as long as those of x, with zeros in the columns beyond the last window. An operand of ones makes db.
// Mapping: each block takes neighbouring images, 64 filters and 32 inputs; each of its three warpgroups a row of the
//   kernel, whose sums stay in registers for all images. A second kernel adds up what the blocks have (lib/split_k.h).
// Traffic and bound: x, dy and codes are read once; dw is written once a block, and read again: so a block has several
//   images. Bound by shared memory, of which every product reads both operands.
// Gains over the step before (3_resident_wgrad.cu): no fragment is loaded to registers; dz is made once for all rows of
//   the kernel; the next image is on its way, and its dz is made, while this one is multiplied.
// Still slow because: three of four elements of dz are zeros.
// Limits: sm_90; f16 and bf16; kernels of 3 x 3, stride 1; windows of 2 x 2, at most 96 of an image; inputs a multiple of
//   32, filters of 64; two images of x and dz fit 200 KB. Else 3_resident_wgrad.cu does it. An infinity in dy or x times
//   a zero is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/conv_relu_pool/gradient_slices.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

namespace wgmma {
namespace {

using namespace resident;

constexpr int kFilters = 64;  // of a block
constexpr int kFilterVectors = kFilters / kVector;
constexpr int kInputVectors = kInputs / kVector;
constexpr int kThreads = 128 * kKernel;
constexpr int kMostItems = 2;  // vectors of dy that a thread has of an image
constexpr int kWindowStep = kThreads / kFilterVectors;
constexpr std::int64_t kMostBytes = 200 << 10;
constexpr std::int64_t kWorthASlice = 2;  // images
constexpr int kOnesVectors = 16;          // the operand of ones: so many positions of 8 columns

struct Shape {
  GradientImage gradient;
  PixelLists x;
  int batch, images_of_block, filters, inputs;
  int gradient_pitch;  // positions in shared memory, of which each vector of dz has a list
};

/// dy and codes of an image's windows: of one vector of filters, every kWindowStep-th window.
template <class T>
struct Windows {
  typename PooledGradient<T>::Vector items[kMostItems];

  __device__ void fetch(const PooledGradient<T>& dz, int windows, int image, int filter, int first) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kMostItems; ++i)
      if (first + i * kWindowStep < windows) items[i] = dz.fetch(image * windows + first + i * kWindowStep, filter);
  }
  /// Makes dz of them, in the list `to`.
  __device__ void store(T* to, const GradientImage& g, int first) const {
    constexpr int kBytes = kVector * static_cast<int>(sizeof(T));
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kMostItems; ++i) {
      if (first + i * kWindowStep >= g.cells) break;
      const auto [down, across] = g.width.divide(first + i * kWindowStep);
      store_window<kVector>(lib::MatrixRow(to) + kWindow * (down * g.line + across) * kBytes, g.line * kBytes,
                            items[i].dy, items[i].codes);
    }
  }
};

/// Of a thread: dw of a row's kernel positions, and db.
struct Sums {
  static constexpr int kOfTap = lib::kSumsOf64<kInputs>;

  float dw[kKernel][kOfTap] = {};
  float db[lib::kSumsOf64<8>] = {};

  __device__ void expose() {
    SIMT_UNROLL
    for (int tap = 0; tap < kKernel; ++tap) lib::warpgroup_expose(dw[tap]);
    lib::warpgroup_expose(db);
  }
  __device__ void wait() {
    SIMT_UNROLL
    for (int tap = 0; tap < kKernel; ++tap) lib::warpgroup_wait_for(dw[tap]);
    lib::warpgroup_wait_for(db);
  }
  /// Starts the products of an image; `b`: of the row's first kernel position.
  template <class T, bool kBias>
  __device__ void multiply(int rows, simt::MatrixDescriptor a, simt::MatrixDescriptor b, simt::MatrixDescriptor ones) {
    for (int k = 0; k < rows; k += 16) {
      SIMT_UNROLL
      for (int tap = 0; tap < kKernel; ++tap)
        lib::warpgroup_mma_m64k16<T, true, true>(dw[tap], a.after(k), b.after(k + tap));
      if constexpr (kBias) lib::warpgroup_mma_m64k16<T, true, true>(db, a.after(k), ones);
    }
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_wgmma_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                      const T* __restrict__ x, float* __restrict__ dw_slices,
                                      float* __restrict__ db_slices) {
  SIMT_DYNAMIC_SHARED(T, memory);  // the ones; twice dz; twice x with its padding
  const GradientImage& g = s.gradient;
  const int thread = static_cast<int>(threadIdx.x);
  const int kernel_row = lib::warpgroup_index();
  const int first_filter = static_cast<int>(blockIdx.z) * kFilters;
  const int first_input = static_cast<int>(blockIdx.y) * kInputs;
  const int gradient_vectors = kFilterVectors * s.gradient_pitch, image_vectors = kInputVectors * s.x.pitch;
  T* const gradients = memory + kOnesVectors * kVector;
  T* const pixels = gradients + 2 * gradient_vectors * kVector;
  const std::uint32_t ones = lib::pair_of<T>(1.0f, 1.0f);
  if (thread < kOnesVectors) simt::store_as(memory + thread * kVector, uint4{ones, ones, ones, ones});
  clear(gradients, 2 * (gradient_vectors + image_vectors));

  const int filter_vector = thread % kFilterVectors, window = thread / kFilterVectors;
  const int begin = static_cast<int>(blockIdx.x) * s.images_of_block;
  const int end = s.batch - begin < s.images_of_block ? s.batch : begin + s.images_of_block;
  Windows<T> windows;
  const auto start = [&](int image, int buffer) {
    if (image >= end) return;
    s.x.start_copy<kThreads>(pixels + buffer * image_vectors * kVector,
                             x + (std::int64_t{image} * s.x.pixels * s.inputs + first_input), s.inputs);
    windows.fetch(dz, g.cells, image, first_filter + filter_vector * kVector, window);
  };
  const auto make_gradient = [&](int image, int buffer) {
    if (image >= end) return;
    windows.store(gradients + (buffer * gradient_vectors + filter_vector * s.gradient_pitch) * kVector, g, window);
  };
  constexpr std::uint32_t kVectorBytes = kVector * sizeof(T), kCoreBytes = 8 * kVectorBytes;
  const auto gradient_list = simt::MatrixDescriptor::without_swizzle(
      lib::shared_address(gradients), kCoreBytes, static_cast<std::uint32_t>(s.gradient_pitch) * kVectorBytes);
  const auto pixel_list = simt::MatrixDescriptor::without_swizzle(lib::shared_address(pixels), kCoreBytes,
                                                                  static_cast<std::uint32_t>(s.x.pitch) * kVectorBytes);
  const auto ones_list =
      simt::MatrixDescriptor::without_swizzle(lib::shared_address(memory), kCoreBytes, kOnesVectors * kVectorBytes);
  const bool sums_bias = kernel_row == 0 && blockIdx.y == 0;
  Sums sums;
  __syncthreads();  // margins are cleared
  start(begin, 0);
  make_gradient(begin, 0);
  for (int image = begin, buffer = 0; image < end; ++image, buffer = 1 - buffer) {
    async_wait<0>();
    lib::warpgroup_publish();
    __syncthreads();  // x and dz are complete, and nobody reads those before
    start(image + 1, 1 - buffer);
    sums.expose();
    lib::warpgroup_fence();
    const auto a = gradient_list.after(buffer * gradient_vectors);
    const auto b = pixel_list.after(buffer * image_vectors + kernel_row * s.x.line);
    if (sums_bias)
      sums.multiply<T, true>(g.rows, a, b, ones_list);
    else
      sums.multiply<T, false>(g.rows, a, b, ones_list);
    lib::warpgroup_commit();
    make_gradient(image + 1, 1 - buffer);
    sums.wait();
  }

  const simt::Position at = simt::warpgroup_position_in_d(thread % 128, 0);
  const int weights = kKernel * kKernel * s.inputs;  // of a filter
  const std::int64_t row = std::int64_t{blockIdx.x} * s.filters + first_filter + at.row;
  float* const dw = dw_slices + row * weights + kernel_row * kKernel * s.inputs + first_input + at.column;
  SIMT_UNROLL
  for (int tap = 0; tap < kKernel; ++tap) {
    SIMT_UNROLL
    for (int i = 0; i < Sums::kOfTap; i += 2)
      simt::store_as(dw + i / 2 % 2 * (8 * weights) + tap * s.inputs + i / 4 * 8,
                     float2{sums.dw[tap][i], sums.dw[tap][i + 1]});
  }
  if (sums_bias && at.column == 0) db_slices[row] = sums.db[0], db_slices[row + 8] = sums.db[2];
}

/// In positions: K, and what lies in shared memory.
struct Sizes {
  std::int64_t line, gradient_rows, gradient_pitch, pitch, bytes;

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + 2 * g.conv.padding),
        gradient_rows(lib::ceil_div((g.out_height() * kWindow - 1) * line + g.out_width() * kWindow, 16) * 16),
        gradient_pitch(list_pitch(gradient_rows, kFilterVectors)),
        pitch(list_pitch(
            std::max((g.conv.in_height + 2 * g.conv.padding) * line, gradient_rows + (kKernel - 1) * (line + 1)),
            kInputVectors)),
        bytes(16 * (kOnesVectors + 2 * (kFilterVectors * gradient_pitch + kInputVectors * pitch))) {}
};

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.kernel_height == kKernel && conv.kernel_width == kKernel && conv.stride == 1 && g.window == kWindow &&
         conv.in_channels > 0 && conv.in_channels % kInputs == 0 && conv.out_channels % kFilters == 0 &&
         g.out_elements() > 0 && g.out_height() * g.out_width() <= kMostItems * kWindowStep &&
         input_blocks(g) <= 65535 && conv.out_channels / kFilters <= 65535 && Sizes(g).bytes <= kMostBytes;
}

/// As many as give each multiprocessor a block.
std::int64_t most_slices(const Geometry& g) {
  return std::max<std::int64_t>(1, kMultiprocessors / (input_blocks(g) * (g.conv.out_channels / kFilters)));
}

}  // namespace

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  if (!knows(g)) return 0;
  const std::int64_t slices = std::min(g.conv.batch, most_slices(g));
  return GradientSlices::bytes(g, slices);
}

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.x), conv.in_channels)) return false;
  const Sizes sizes(g);
  const std::int64_t images = std::max(kWorthASlice, lib::ceil_div(conv.batch, most_slices(g)));
  const std::int64_t slices = lib::ceil_div(conv.batch, images);
  const Shape shape{.gradient = gradient_image(g, sizes.line, sizes.gradient_rows, 0),
                    .x = PixelLists(g, sizes.line, sizes.pitch),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .images_of_block = as_int(images),
                    .filters = as_int(conv.out_channels),
                    .inputs = as_int(conv.in_channels),
                    .gradient_pitch = as_int(sizes.gradient_pitch)};
  const simt::Config config{.grid = dim3(static_cast<unsigned>(slices), static_cast<unsigned>(input_blocks(g)),
                                         static_cast<unsigned>(conv.out_channels / kFilters)),
                            .block = dim3(kThreads),
                            .shared_bytes = static_cast<std::size_t>(sizes.bytes)};
  return with_aligned_gradient(args, [&]<class T>(const PooledGradient<T>& dz) {
    const GradientSlices sums(args, slices);
    simt::launch<conv_relu_pool_wgmma_wgrad_kernel<T>>(stream, config, shape, dz, static_cast<const T*>(args.x),
                                                       sums.dw, sums.db);
    sums.sum(stream, args);
  });
}

}  // namespace wgmma
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
