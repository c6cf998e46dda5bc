// SPDX-License-Identifier: Apache-2.0
// Idea: dx of many images is one product of wgmma, and its operand A for a kernel position is dz itself, read from
//   another position on. All images lie in shared memory as one list of positions, in rows with so many zeros after
//   them as the kernel has columns less one, and as many rows of zeros after each image as it has rows less one. So
//   whatever a kernel position sees beyond an edge is 0, and lies a fixed number of positions before:
//
//     dx[p, i] = sum over kernel positions (h, w) and o of dz[p - h * line - w, o] * weights[o, h, w, i]
//
//   A vector of 8 channels of one position are 16 bytes, after which the next position comes; so eight positions are a
//   core of an operand without a swizzle (simt::MatrixDescriptor), from whichever position on.
// Mapping: each block takes neighbouring tiles of 64 positions, and 32 inputs; each of two warpgroups every second
//   tile.
// Traffic and bound: dy and codes are read once for 32 inputs, but for those that two blocks see; w once a block; dx is
//   written in whole sectors. Bound by tensor cores, whose rows are 144 of 144 for a kernel of 3 x 3 on 10 x 10
//   outputs.
// Gains over the step before (3_resident_dgrad.cu): no fragment is loaded to registers; 36 instructions of a warpgroup
//   for 64 positions instead of 432 of two warps; no row of a tile is empty.
// Still slow because: w and dz are not on the way while the block before multiplies; few images fill half a GPU.
// Limits: sm_90; f16 and bf16; kernels of 3 x 3, stride 1, padding at most 2; windows of 2 x 2; inputs a multiple of 8;
//   64 filters; two tiles of dz, and w, fit 200 KB. Else, and for the forward pass, dw and db, it is the variant
//   before. An infinity in dy or w times a zero is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/lib/warpgroup_mma.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

namespace wgmma {
namespace {

using namespace resident;
using conv2d::Divisor;

constexpr int kTaps = kKernel * kKernel;
constexpr int kChannels = 64;  // filters: K of a kernel position
constexpr int kVectors = kChannels / kVector;
constexpr int kTileRows = 64;
constexpr int kGroups = 2;  // warpgroups
constexpr int kThreads = 128 * kGroups;
constexpr std::int64_t kMostBytes = 200 << 10;
constexpr std::int64_t kBlocksOfMultiprocessor = 2;

/// w in shared memory, in vectors of 16 bytes: of a kernel position and 8 inputs, those of all filters, then two of
/// nothing, so that neighbours in w hit other banks.
constexpr int kFilterColumn = kChannels + 2;
constexpr int kFilterTap = kInputs / kVector * kFilterColumn;
constexpr int kFilterVectors = kTaps * kFilterTap;

struct Shape {
  int batch, height, width, inputs, padding;  // of x
  int tiles;                                  // of a block
  int line, image;                            // positions of a row and of an image of dz, with their zeros
  int before;                                 // positions that the first of a tile sees before itself
  int pairs;                                  // rows of windows in a block
  int pitch;                                  // positions in shared memory, of which each vector of channels has a list
  int reach_rows, reach_columns;              // of x that see dz
  int unreached;                              // pixels of an image that do not: their gradient is 0
  Divisor pair, pairs_of_image, windows_of_line, image_positions, columns, unreached_columns;
};

/// w for 32 inputs from `first_input` on.
template <class T>
__device__ void store_filters(T* to, const Shape& s, const T* w, int first_input) {
  const auto thread = static_cast<unsigned>(threadIdx.x);
  const int column = static_cast<int>(thread % (kInputs / kVector));
  const int input = first_input + column * kVector;
  for (int filter = static_cast<int>(thread / (kInputs / kVector)); filter < kChannels;
       filter += kThreads / (kInputs / kVector)) {
    const T* from = w + filter * kTaps * s.inputs + input;
    T* const here = to + (column * kFilterColumn + filter) * kVector;
    SIMT_UNROLL_ON_GPU
    for (int tap = 0; tap < kTaps; ++tap, from += s.inputs)
      simt::store_as(here + tap * kFilterTap * kVector, input < s.inputs ? simt::load_as<uint4>(from) : uint4{});
  }
}

/// dz of the block's rows of windows, of which `first_pair` is the first; there may be none before the first image,
/// after the last one, and between two.
template <class T>
__device__ void store_windows(T* to, const Shape& s, const PooledGradient<T>& dz, int first_pair) {
  const auto thread = static_cast<unsigned>(threadIdx.x);
  const auto vector = static_cast<int>(thread % kVectors);
  const int row = s.line * kVector * static_cast<int>(sizeof(T));
  const lib::MatrixRow first(to + vector * s.pitch * kVector);
  const int windows_of_line = s.windows_of_line.value();
  struct Window {
    typename PooledGradient<T>::Vector eight;
    bool exists;
  };
  lib::load_ahead<kWindowsAtOnce>(
      static_cast<int>(thread / kVectors), s.pairs * windows_of_line, kThreads / kVectors,
      [&](int i) -> Window {
        const auto [of_block, across] = s.windows_of_line.divide(i);
        if (first_pair + of_block < 0) return {};
        const auto [image, down] = s.pairs_of_image.divide(first_pair + of_block);
        if (image >= s.batch || down == s.pairs_of_image.value() - 1) return {};
        const int window = (image * (s.pairs_of_image.value() - 1) + down) * windows_of_line + across;
        return {dz.fetch(window, vector * kVector), true};
      },
      [&](int i, const Window& window) {
        if (!window.exists) return;
        const auto [of_block, across] = s.windows_of_line.divide(i);
        const int at = (of_block * s.line + across) * kWindow * kVector * static_cast<int>(sizeof(T));
        store_window<kVector>(first + at, row, window.eight.dy, window.eight.codes);
      });
}

/// Of a warp: 16 positions from `first` on, and 32 inputs. Lane q of four neighbours has pairs 8 j + 2 q of a row's
/// sums; it gets, and stores, elements 8 q to 8 q + 7.
template <class T>
__device__ void store_rows(const float (&sums)[lib::kSumsOf64<kInputs>], T* dx, const Shape& s, int first,
                           int first_input) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int input = first_input + lane % 4 * kVector;
  SIMT_UNROLL_ON_GPU
  for (int half = 0; half < 2; ++half) {
    std::uint32_t words[kInputs / 8];
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kInputs / 8; ++j)
      words[j] = lib::pair_of<T>(sums[4 * j + 2 * half], sums[4 * j + 2 * half + 1]);
    transpose_of_four(words, lane);
    const auto [image, position] = s.image_positions.divide(first + 8 * half + lane / 4);
    const auto [row, column] = s.columns.divide(position);
    const int y = row - s.padding;
    const int x = column - s.padding;
    if (image >= s.batch || y < 0 || y >= s.height || x < 0 || x >= s.width || input >= s.inputs) continue;
    simt::store_as(dx + ((std::int64_t{image} * s.height + y) * s.width + x) * s.inputs + input,
                   uint4{words[0], words[1], words[2], words[3]});
  }
}

/// Zeros where no window reaches: for images whose first position is one of the block's.
template <class T>
__device__ void store_unreached(T* dx, const Shape& s, int first, int first_input) {
  const auto thread = static_cast<unsigned>(threadIdx.x);
  const int input = first_input + static_cast<int>(thread % (kInputs / kVector)) * kVector;
  if (s.unreached == 0 || input >= s.inputs) return;
  const int below = (s.height - s.reach_rows) * s.width;
  const int end = first + s.tiles * kTileRows;
  for (int image = s.image_positions.divide(first + s.image - 1).quotient; image < s.batch && image * s.image < end;
       ++image) {
    T* const to = dx + std::int64_t{image} * s.height * s.width * s.inputs + input;
    for (int i = static_cast<int>(thread / (kInputs / kVector)); i < s.unreached; i += kThreads / (kInputs / kVector)) {
      int pixel = s.reach_rows * s.width + i;
      if (i >= below) {
        const auto [row, column] = s.unreached_columns.divide(i - below);
        pixel = row * s.width + s.reach_columns + column;
      }
      simt::store_as(to + pixel * s.inputs, uint4{});
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    conv_relu_pool_wgmma_dgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                      const T* __restrict__ w, T* __restrict__ dx) {
  SIMT_DYNAMIC_SHARED(T, memory);  // w; then dz
  T* const gradient = memory + kFilterVectors * kVector;
  const int first_input = static_cast<int>(blockIdx.y) * kInputs;
  const int first = static_cast<int>(blockIdx.x) * s.tiles * kTileRows;
  constexpr int kPairsBefore = 2;  // more than a kernel reaches back
  const int first_pair = s.pair.divide(first - s.before + kPairsBefore * s.pair.value()).quotient - kPairsBefore;
  clear(gradient, kVectors * s.pitch);
  store_filters(memory, s, w, first_input);
  __syncthreads();  // zeros are there
  store_windows(gradient, s, dz, first_pair);
  store_unreached(dx, s, first, first_input);
  lib::warpgroup_publish();
  __syncthreads();  // dz and w are there

  const int warp = static_cast<int>(threadIdx.x) / 32;
  constexpr std::uint32_t kVectorBytes = kVector * sizeof(T);
  constexpr std::uint32_t kCoreBytes = 8 * kVectorBytes;
  const auto a_list = simt::MatrixDescriptor::without_swizzle(
      lib::shared_address(gradient), static_cast<std::uint32_t>(s.pitch) * kVectorBytes, kCoreBytes);
  const auto b_list =
      simt::MatrixDescriptor::without_swizzle(lib::shared_address(memory), kCoreBytes, kFilterColumn * kVectorBytes);
  for (int tile = lib::warpgroup_index(); tile < s.tiles; tile += kGroups) {
    const int position = first + tile * kTileRows;
    float sums[lib::kSumsOf64<kInputs>] = {};
    lib::warpgroup_expose(sums);
    lib::warpgroup_fence();
    int at = position - first_pair * s.pair.value();  // in the list, for the first kernel position of a row
    for_each_constant<kKernel>([&](auto row) {
      for_each_constant<kKernel>([&](auto column) {
        for_each_constant<kChannels / 16>([&](auto k) {
          lib::warpgroup_mma_m64k16<T, false, true>(sums, a_list.after(at - column + 2 * k * s.pitch),
                                                    b_list.after((row * kKernel + column) * kFilterTap + 16 * k));
        });
      });
      at -= s.line;
    });
    lib::warpgroup_commit();
    lib::warpgroup_wait_for(sums);
    store_rows(sums, dx, s, position + warp % 4 * 16, first_input);
  }
}

/// In positions, see Shape.
struct Sizes {
  std::int64_t line, image, before;

  explicit Sizes(const Geometry& g)
      : line(g.out_width() * kWindow + kKernel - 1),
        image((g.out_height() * kWindow + kKernel - 1) * line),
        before((kKernel - 1) * (line + 1)) {}

  std::int64_t pairs(std::int64_t tiles) const { return (tiles * kTileRows + before) / (kWindow * line) + 2; }
  std::int64_t pitch(std::int64_t tiles) const { return list_pitch(pairs(tiles) * kWindow * line, kVectors); }
  std::int64_t bytes(std::int64_t tiles) const { return 16 * (kFilterVectors + kVectors * pitch(tiles)); }
};

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.kernel_height == kKernel && conv.kernel_width == kKernel && conv.stride == 1 && conv.padding < kKernel &&
         g.window == kWindow && conv.in_channels % kVector == 0 && conv.out_channels == kChannels &&
         g.out_elements() > 0 && input_blocks(g) <= 65535 && Sizes(g).bytes(kGroups) <= kMostBytes &&
         conv.batch * Sizes(g).image < (std::int64_t{1} << 30);
}

}  // namespace

bool dgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.w), conv.in_channels) ||
      !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.dx), conv.in_channels))
    return false;
  const Sizes sizes(g);
  const std::int64_t all_tiles = lib::ceil_div(conv.batch * sizes.image, kTileRows);
  std::int64_t tiles = std::max<std::int64_t>(
      kGroups, lib::ceil_div(all_tiles * input_blocks(g), kMultiprocessors * kBlocksOfMultiprocessor));
  while (sizes.bytes(tiles) > kMostBytes) --tiles;
  const std::int64_t reach_rows = std::min(conv.in_height, sizes.image / sizes.line - conv.padding);
  const std::int64_t reach_columns = std::min(conv.in_width, sizes.line - conv.padding);
  const Shape shape{.batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .height = as_int(conv.in_height),
                    .width = as_int(conv.in_width),
                    .inputs = as_int(conv.in_channels),
                    .padding = as_int(conv.padding),
                    .tiles = as_int(tiles),
                    .line = as_int(sizes.line),
                    .image = as_int(sizes.image),
                    .before = as_int(sizes.before),
                    .pairs = as_int(sizes.pairs(tiles)),
                    .pitch = as_int(sizes.pitch(tiles)),
                    .reach_rows = as_int(reach_rows),
                    .reach_columns = as_int(reach_columns),
                    .unreached = as_int(conv.in_height * conv.in_width - reach_rows * reach_columns),
                    .pair = Divisor(as_int(kWindow * sizes.line)),
                    .pairs_of_image = Divisor(as_int(g.out_height() + 1)),
                    .windows_of_line = Divisor(as_int(g.out_width())),
                    .image_positions = Divisor(as_int(sizes.image)),
                    .columns = Divisor(as_int(sizes.line)),
                    .unreached_columns = Divisor(as_int(conv.in_width - reach_columns))};
  const simt::Config config{
      .grid = dim3(static_cast<unsigned>(lib::ceil_div(all_tiles, tiles)), static_cast<unsigned>(input_blocks(g))),
      .block = dim3(kThreads),
      .shared_bytes = static_cast<std::size_t>(sizes.bytes(tiles))};
  return with_aligned_gradient(args, [&]<class T>(const PooledGradient<T>& dz) {
    simt::launch<conv_relu_pool_wgmma_dgrad_kernel<T>>(stream, config, shape, dz, static_cast<const T*>(args.w),
                                                       static_cast<T*>(args.dx));
  });
}

}  // namespace wgmma
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
