// SPDX-License-Identifier: Apache-2.0
// Idea: x and dz of whole images stay in shared memory (resident.cuh), dw and db in registers for many images.
// Mapping: each block takes a slice of the images, one row of the kernel, 64 or 32 filters and 32 inputs. Each warp has
//   one position of the kernel row; teams of such warps have an image each, and add up what they have at the end. A
//   second kernel adds up the slices (lib/split_k.h). K are the positions of dz in rows as long as those of x, with
//   zeros in the columns beyond the last window: x is read as it lies, from the first pixel that the warp's kernel
//   position sees.
// Traffic and bound: a slice is as large as dw, and is written and read again. So there are few: as many blocks as
//   multiprocessors, but most of them differ in the part of dw, not in the images. The price: x is read once for 64 or
//   32 filters, dy and codes once for each row of the kernel, from L2 but for the first time. Bound by memory, and by
//   shared memory: six ldmatrix for sixteen products (64 filters), four for eight (32).
// Gains over the step before (3_mma_backward.cu): dz goes to shared memory alone, once for a row of the kernel; no
//   addresses and bounds in the main loop, but margins of zeros in shared memory.
// Still slow because: the next images are not on the way while these are multiplied; all warps of a team load the same
//   dz; three of four of its elements are zeros.
// Limits: f16 and bf16; at most 16 kernel positions, stride 1; windows of 2 x 2; channels in multiples of 8; dz and x
//   of a block fit 96 KB. Else 3_mma_backward.cu does it. An infinity in dy or x times a zero is NaN.

#include <algorithm>

#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/gradient_slices.h"
#include "kernels/ops/conv_relu_pool/resident.cuh"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace resident {
namespace {

using conv2d::Divisor;

constexpr std::int64_t kMostTaps = 16;
constexpr std::int64_t kMostTeams = 2;
constexpr std::int64_t kMostWarps = 12;
constexpr int kManyFilters = 64, kFewFilters = 32;  // of a block

struct Shape {
  GradientImage gradient;
  int batch, images_of_slice, filters, inputs;
  int height, width, line, rows, padding;  // of x: `line` with padding, `rows` under one row of the kernel
  int taps, teams;
  int team_elements, cleared_elements;           // of dz and x of a team in shared memory; where margins are
  Divisor columns, kernel_height, kernel_width;  // columns of x
};

/// The rows of x that row `kernel_row` of the kernel sees, 32 inputs from `first_input` on.
template <class T>
__device__ void copy_rows(T* to, const Shape& s, const T* image, int kernel_row, int first_input, int thread,
                          int threads) {
  constexpr int kVectors = kInputs / kVector;
  const int input = first_input + thread % kVectors * kVector;
  if (input >= s.inputs) return;
  const int above = s.padding > kernel_row ? s.padding - kernel_row : 0;  // rows of padding
  const int first = kernel_row + above - s.padding;
  const int pixels = (s.rows - above < s.height - first ? s.rows - above : s.height - first) * s.width;
  const int step = threads / kVectors;
  int pixel = thread / kVectors;
  const T* from = image + (first * s.width + pixel) * s.inputs + input;
  to += (above * s.line + s.padding) * kInputPitch + thread % kVectors * kVector;
  if (s.padding > 0) {
    for (; pixel < pixels; pixel += step, from += step * s.inputs)
      async_copy16(to + (pixel + 2 * s.padding * s.columns.divide(pixel).quotient) * kInputPitch, from);
  } else {
    to += pixel * kInputPitch;
    for (; pixel < pixels; pixel += step, from += step * s.inputs, to += step * kInputPitch) async_copy16(to, from);
  }
}

/// The sums of a warp: kFilters x 32 of dw, and kFilters of db in its first column.
template <int kFilters>
struct Sums {
  static constexpr int kTiles = kFilters / 16;
  static constexpr int kQuads = kTiles * (kInputs / 8 + 1);  // of four numbers a lane

  float dw[kTiles][kInputs / 8][4] = {};
  float db[kTiles][4] = {};

  __device__ float (&quad(int i))[4] {
    return i < kTiles ? db[i] : dw[(i - kTiles) / (kInputs / 8)][(i - kTiles) % (kInputs / 8)];
  }
  /// `to` and `from`: of this warp, kQuads for each lane.
  __device__ void store(float4* to, int lane) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kQuads; ++i) to[32 * i + lane] = {quad(i)[0], quad(i)[1], quad(i)[2], quad(i)[3]};
  }
  __device__ void add(const float4* from, int lane) {
    SIMT_UNROLL_ON_GPU
    for (int i = 0; i < kQuads; ++i) {
      const float4 more = from[32 * i + lane];
      quad(i)[0] += more.x, quad(i)[1] += more.y, quad(i)[2] += more.z, quad(i)[3] += more.w;
    }
  }
};

template <class T, int kFilters>
__global__ void __launch_bounds__(32 * kMostWarps)
    conv_relu_pool_resident_wgrad_kernel(SIMT_GRID_CONST(Shape) s, SIMT_GRID_CONST(PooledGradient<T>) dz,
                                         const T* __restrict__ x, float* __restrict__ dw_slices,
                                         float* __restrict__ db_slices) {
  // Of each team: dz; x with its padding, rows of 32 inputs. At the end sums of all teams but the first.
  SIMT_DYNAMIC_SHARED(T, memory);
  const GradientImage& g = s.gradient;
  constexpr int kPitch = pitch_of(kFilters);
  constexpr int kBytes = static_cast<int>(sizeof(T));
  constexpr int kTiles = Sums<kFilters>::kTiles;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto [team, kernel_column] = s.kernel_width.divide(static_cast<int>(threadIdx.x) / 32);
  const int threads = 32 * s.kernel_width.value();  // of a team
  const int thread = 32 * kernel_column + lane;
  const auto [input_block, kernel_row] = s.kernel_height.divide(static_cast<int>(blockIdx.y));
  const int first_input = input_block * kInputs;
  const int first_filter = static_cast<int>(blockIdx.z) * kFilters;
  T* const gradient = memory + team * s.team_elements;
  T* const pixels = gradient + g.rows * kPitch;
  clear(gradient, s.cleared_elements / kVector, thread, threads);
  const simt::Position in_a = simt::matrices_across(lane);
  const simt::Position in_b = simt::matrices_down(lane);
  const lib::MatrixRow first_a(gradient + in_a.row * kPitch + in_a.column);
  const lib::MatrixRow first_b(pixels + (kernel_column + in_b.row) * kInputPitch + in_b.column);
  const bool sums_bias = kernel_column == 0 && blockIdx.y == 0;
  const std::uint32_t ones = lib::pair_of<T>(1.0f, 1.0f);
  Sums<kFilters> sums;
  const int begin = static_cast<int>(blockIdx.x) * s.images_of_slice;
  const int end = s.batch - begin < s.images_of_slice ? s.batch : begin + s.images_of_slice;
  for (int first = begin; first < end; first += s.teams) {
    const int image = first + team;
    __syncthreads();  // margins are cleared, and no warp still reads the images before
    if (image < end) {
      const T* const from = x + std::int64_t{image} * s.height * s.width * s.inputs;
      copy_rows(pixels, s, from, kernel_row, first_input, thread, threads);
      async_commit();
      store_gradient<kFilters>(gradient, g, dz, image, first_filter, thread, threads);
      async_wait<0>();
    }
    __syncthreads();  // x and dz are complete
    if (image >= end) continue;
    lib::MatrixRow a_row = first_a, b_row = first_b;
    for (int k = 0; k < g.rows; k += 16) {
      std::uint32_t a[kTiles][4], b[kInputs / 16][4];
      load_columns<0>(b, b_row);
      for_each_constant<kTiles>([&](auto i) {
        a_row.template load_trans<16 * i * kBytes>(a[i]);
        multiply_add<T>(sums.dw[i], a[i], b);
      });
      a_row = a_row + 16 * kPitch * kBytes;
      b_row = b_row + 16 * kInputPitch * kBytes;
      if (!sums_bias) continue;
      SIMT_UNROLL_ON_GPU
      for (int i = 0; i < kTiles; ++i) lib::mma_m16n8k16<T>(sums.db[i], a[i], ones, ones);
    }
  }
  __syncthreads();  // no warp still reads an image
  float4* const others = reinterpret_cast<float4*>(memory) + kernel_column * Sums<kFilters>::kQuads * 32;
  const int quads_of_team = s.kernel_width.value() * Sums<kFilters>::kQuads * 32;
  if (team > 0) sums.store(others + (team - 1) * quads_of_team, lane);
  __syncthreads();  // the first team sees them
  if (team > 0) return;
  for (int other = 1; other < s.teams; ++other) sums.add(others + (other - 1) * quads_of_team, lane);

  const simt::Position in_c = simt::mma_position_in_c(lane, 0);
  const int filter = first_filter + in_c.row;
  const int input = first_input + in_c.column;
  const int tap = kernel_row * s.kernel_width.value() + kernel_column;
  const int weights = s.taps * s.inputs;  // of a filter
  float* const dw = dw_slices + (std::int64_t{blockIdx.x} * s.filters + filter) * weights + tap * s.inputs + input;
  float* const db = db_slices + std::int64_t{blockIdx.x} * s.filters + filter;
  SIMT_UNROLL_ON_GPU
  for (int i = 0; i < 2 * kTiles; ++i) {  // eight rows each
    if (filter + 8 * i >= s.filters) break;
    float* const row = dw + std::int64_t{8 * i} * weights;
    SIMT_UNROLL_ON_GPU
    for (int j = 0; j < kInputs / 8; ++j) {
      const float* pair = &sums.dw[i / 2][j][i % 2 * 2];
      if (input + 8 * j < s.inputs) simt::store_as(row + 8 * j, float2{pair[0], pair[1]});
    }
    if (sums_bias && in_c.column == 0) db[8 * i] = sums.db[i / 2][i % 2 * 2];
  }
}

struct Sizes {
  std::int64_t line, rows, gradient_rows, pixels;  // of dz as it lies in shared memory, and of x

  explicit Sizes(const Geometry& g)
      : line(g.conv.in_width + 2 * g.conv.padding),
        rows(g.out_height() * g.window),
        gradient_rows(lib::ceil_div(rows * line - (line - g.out_width() * g.window), 16) * 16),
        pixels(std::max(rows * line, gradient_rows + g.conv.kernel_width - 1)) {}

  std::int64_t team_elements(std::int64_t filters) const {
    return gradient_rows * pitch_of(filters) + pixels * kInputPitch;
  }
  /// Where a team finds zeros that nobody writes: in dz, and in x if it has margins.
  std::int64_t cleared_elements(std::int64_t filters, const Geometry& g) const {
    const bool x_fills_all = g.conv.padding == 0 && pixels == rows * line && g.conv.in_channels % kInputs == 0;
    return x_fills_all ? gradient_rows * pitch_of(filters) : team_elements(filters);
  }
  std::int64_t bytes(std::int64_t teams, std::int64_t filters, std::int64_t kernel_width) const {
    const std::int64_t sums = (teams - 1) * kernel_width * filters * (kInputs + 8) * std::int64_t{sizeof(float)};
    return std::max(2 * teams * team_elements(filters), sums);
  }
};

std::int64_t parts_of_dw(const Geometry& g, std::int64_t filters) {
  return g.conv.kernel_height * input_blocks(g) * lib::ceil_div(g.conv.out_channels, filters);
}

std::int64_t most_slices(const Geometry& g, std::int64_t filters) {
  return std::max<std::int64_t>(1, kMultiprocessors / parts_of_dw(g, filters));
}

/// How the batch and dw are divided among blocks: a few images for each slice are worth its bytes, or it has more of
/// them and a smaller part of dw.
struct Division {
  std::int64_t filters, images_of_slice, slices, teams;

  explicit Division(const Geometry& g) : filters(kManyFilters), images_of_slice(images_for(g, kManyFilters)) {
    constexpr std::int64_t kWorthASlice = 4, kWorthATeam = 4;  // images
    if (images_of_slice < kWorthASlice) filters = kFewFilters, images_of_slice = images_for(g, kFewFilters);
    slices = std::max<std::int64_t>(1, lib::ceil_div(g.conv.batch, images_of_slice));
    // A team costs as much as an image or two to begin with, and to add up.
    teams = std::clamp<std::int64_t>(images_of_slice / kWorthATeam, 1,
                                     std::min(kMostTeams, kMostWarps / g.conv.kernel_width));
    if (Sizes(g).bytes(teams, filters, g.conv.kernel_width) > kMostSharedBytes) teams = 1;
  }

 private:
  static std::int64_t images_for(const Geometry& g, std::int64_t filters) {
    return std::max<std::int64_t>(1, lib::ceil_div(g.conv.batch, most_slices(g, filters)));
  }
};

bool knows(const Geometry& g) {
  const conv2d::Geometry& conv = g.conv;
  return conv.taps() <= kMostTaps && conv.kernel_width <= kMostWarps && conv.stride == 1 && conv.in_channels > 0 &&
         conv.out_channels > 0 && conv.in_channels % kVector == 0 && conv.out_channels % kVector == 0 &&
         g.window == kWindow && input_blocks(g) * conv.kernel_height <= 65535 &&
         lib::ceil_div(conv.out_channels, kFewFilters) <= 65535 &&
         Sizes(g).bytes(1, kManyFilters, conv.kernel_width) <= kMostSharedBytes;
}

}  // namespace

std::size_t wgrad_workspace_bytes(const Geometry& g) {
  if (!knows(g)) return 0;
  const std::int64_t slices = std::clamp<std::int64_t>(g.conv.batch, 1, most_slices(g, kManyFilters));
  return GradientSlices::bytes(g, slices);
}

bool wgrad(Stream& stream, const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const conv2d::Geometry& conv = g.conv;
  if (!knows(g) || !conv2d::has_aligned_rows(static_cast<const std::uint16_t*>(args.x), conv.in_channels)) return false;
  const Sizes sizes(g);
  const Division division(g);
  const Shape shape{.gradient = gradient_image(g, sizes.line, sizes.gradient_rows, 0),
                    .batch = lib::narrow<int>("conv_relu_pool", "batch", conv.batch),
                    .images_of_slice = as_int(division.images_of_slice),
                    .filters = as_int(conv.out_channels),
                    .inputs = as_int(conv.in_channels),
                    .height = as_int(conv.in_height),
                    .width = as_int(conv.in_width),
                    .line = as_int(sizes.line),
                    .rows = as_int(sizes.rows),
                    .padding = as_int(conv.padding),
                    .taps = as_int(conv.taps()),
                    .teams = as_int(division.teams),
                    .team_elements = as_int(sizes.team_elements(division.filters)),
                    .cleared_elements = as_int(sizes.cleared_elements(division.filters, g)),
                    .columns = Divisor(as_int(conv.in_width)),
                    .kernel_height = Divisor(as_int(conv.kernel_height)),
                    .kernel_width = Divisor(as_int(conv.kernel_width))};
  const simt::Config config{
      .grid = dim3(static_cast<unsigned>(division.slices), static_cast<unsigned>(input_blocks(g) * conv.kernel_height),
                   static_cast<unsigned>(lib::ceil_div(conv.out_channels, division.filters))),
      .block = dim3(static_cast<unsigned>(32 * conv.kernel_width * division.teams)),
      .shared_bytes = static_cast<std::size_t>(sizes.bytes(division.teams, division.filters, conv.kernel_width))};
  return with_aligned_gradient(args, [&]<class T>(const PooledGradient<T>& dz) {
    const GradientSlices sums(args, division.slices);
    const auto* x = static_cast<const T*>(args.x);
    if (division.filters == kManyFilters)
      simt::launch<conv_relu_pool_resident_wgrad_kernel<T, kManyFilters>>(stream, config, shape, dz, x, sums.dw,
                                                                          sums.db);
    else
      simt::launch<conv_relu_pool_resident_wgrad_kernel<T, kFewFilters>>(stream, config, shape, dz, x, sums.dw,
                                                                         sums.db);
    sums.sum(stream, args);
  });
}

}  // namespace resident
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
