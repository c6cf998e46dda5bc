// SPDX-License-Identifier: Apache-2.0
// Idea: for CPUs, wgrad as a sum of outer products: at each position of y, 8 filters of dy times two vectors of x's
//   channels. A tile of dw, 8 filters by two vectors, stays in registers for up to 128 positions. Before, what the tile
//   reads is copied into panels, in which it is contiguous: x and dy have a stride of all their channels, so that
//   neighbouring positions would compete for few sets of the first-level cache.
// Mapping: a worker takes tiles of filters, so that no sums of workers have to be added up, and the bits do not depend on
//   their number. The positions that a kernel position sees inside the image are listed once for all tiles.
// Traffic and bound: a number of the panels of x is read 8 times per kernel position and group of 64 filters, from the
//   first-level cache; bound by multiply-adds: 16 of them, and 10 loads, at each position.
// Gains over the variant direct: 16 sums per load of two vectors; the first-level cache instead of the others.
// Still slow because: the sums of a tile are loaded and stored every 128 positions; each worker copies the panels of x.
// Limits: f32; fits_panels. The direct variant computes other wgrads, and the other passes.

#include <algorithm>
#include <cstring>

#include "kernels/lib/element.h"
#include "kernels/lib/native_vector.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/conv2d/panels.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

Variant direct();  // 1_direct.cu

namespace panels {
namespace {

constexpr int kVectors = 2;
constexpr int kInputs = kVectors * lib::kNativeLanes;      // of a tile
constexpr int kFilters = lib::kNativePairs >= 10 ? 8 : 4;  // of a tile
constexpr int kGroup = 64;                                 // filters whose dy are in panels at a time
constexpr int kPositions = static_cast<int>(kPanelWidth);  // at most, of a block of y's rows
constexpr int kTaps = static_cast<int>(kPanelKernel * kPanelKernel);

constexpr std::size_t kRoom = 200 << 10;  // bytes of shared memory

/// A position of y, and what a kernel position sees there: offsets in the panels.
struct Pair {
  std::int32_t dy, x;
};

/// In shared memory, and behind it the panel of x: [input rows of the block][in_width][kInputs].
struct alignas(64) Panels {
  Pair pairs[kTaps][kPositions];
  int counts[kTaps];  // of pairs
  alignas(64) float dy[kGroup / kFilters][kPositions * kFilters];

  float* x() { return reinterpret_cast<float*>(this + 1); }
};

/// Rows [begin, end) of y, of all images, and rows [in_begin, in_end) of x, which they see.
struct Block {
  std::int64_t begin, end, in_begin, in_end;

  Block(const Geometry& g, std::int64_t first, std::int64_t rows)
      : begin(first), end(std::min(first + rows, g.batch * g.out_height())) {
    in_begin = in_row(g, begin, 0);
    in_end = in_row(g, end - 1, g.kernel_height - 1) + 1;
  }
  /// The nearest row of the same image to the one that row `row` of y sees by row `kh` of the kernel.
  static std::int64_t in_row(const Geometry& g, std::int64_t row, std::int64_t kh) {
    const std::int64_t n = row / g.out_height();
    const std::int64_t ih = (row - n * g.out_height()) * g.stride + kh - g.padding;
    return n * g.in_height + std::clamp<std::int64_t>(ih, 0, g.in_height - 1);
  }
};

/// The most rows of x that `rows` rows of y see, and those between them.
std::int64_t most_input_rows(const Geometry& g, std::int64_t rows) {
  const std::int64_t images = (rows + g.out_height() - 2) / g.out_height() + 1;
  return std::min(rows * g.stride + images * (g.kernel_height - 1), images * g.in_height);
}

std::size_t bytes_of(const Geometry& g, std::int64_t rows) {
  return sizeof(Panels) + static_cast<std::size_t>(most_input_rows(g, rows) * g.in_width * kInputs) * sizeof(float);
}

/// Rows of y in a block: as many as there is room for. One always fits.
std::int64_t rows_of_block(const Geometry& g) {
  std::int64_t rows = std::max<std::int64_t>(kPositions / g.out_width(), 1);
  while (rows > 1 && bytes_of(g, rows) > kRoom) rows /= 2;
  return rows;
}

void list_pairs(const Geometry& g, const Block& block, Panels& panels) {
  for (std::int64_t tap = 0; tap < g.kernel_height * g.kernel_width; ++tap) {
    const std::int64_t kh = tap / g.kernel_width, kw = tap - kh * g.kernel_width;
    int count = 0;
    for (std::int64_t row = block.begin; row < block.end; ++row) {
      const std::int64_t n = row / g.out_height();
      const std::int64_t ih = (row - n * g.out_height()) * g.stride + kh - g.padding;
      if (ih < 0 || ih >= g.in_height) continue;
      const std::int64_t in_row = n * g.in_height + ih - block.in_begin;
      for (std::int64_t ow = 0; ow < g.out_width(); ++ow) {
        const std::int64_t iw = ow * g.stride + kw - g.padding;
        if (iw < 0 || iw >= g.in_width) continue;
        panels.pairs[tap][count++] = {
            .dy = static_cast<std::int32_t>(((row - block.begin) * g.out_width() + ow) * kFilters),
            .x = static_cast<std::int32_t>((in_row * g.in_width + iw) * kInputs)};
      }
    }
    panels.counts[tap] = count;
  }
}

/// Columns [0, kWidth) of a matrix of `rows` rows, `stride` apart.
template <int kWidth>
void copy_panel(const float* __restrict from, std::int64_t stride, std::int64_t rows, float* __restrict to) {
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(to + row * kWidth, from + row * stride, kWidth * sizeof(float));
}

/// dw of kFilters filters, `stride` apart, and kInputs inputs: adds the products of all pairs.
void add_tile(const Pair* pairs, int count, const float* dy, const float* x, float* dw, std::int64_t stride) {
  lib::NativeFloats sums[kFilters][kVectors];
  SIMT_UNROLL
  for (int o = 0; o < kFilters; ++o) SIMT_UNROLL
  for (int v = 0; v < kVectors; ++v) sums[o][v] = lib::load(dw + o * stride + v * lib::kNativeLanes);
  for (int pair = 0; pair < count; ++pair) {
    const float* const gradients = dy + pairs[pair].dy;
    lib::NativeFloats inputs[kVectors];
    SIMT_UNROLL
    for (int v = 0; v < kVectors; ++v) inputs[v] = lib::load(x + pairs[pair].x + v * lib::kNativeLanes);
    SIMT_UNROLL
    for (int o = 0; o < kFilters; ++o) SIMT_UNROLL
    for (int v = 0; v < kVectors; ++v) sums[o][v] += gradients[o] * inputs[v];
  }
  SIMT_UNROLL
  for (int o = 0; o < kFilters; ++o) SIMT_UNROLL
  for (int v = 0; v < kVectors; ++v) lib::store(dw + o * stride + v * lib::kNativeLanes, sums[o][v]);
}

void conv2d_wgrad_panels_kernel(SIMT_GRID_CONST(Geometry) g, const float* x, const float* dy, float* dw,
                                bool accumulate) {
  SIMT_DYNAMIC_SHARED(Panels, panels);
  const auto tiles = lib::row_range(g.out_channels / kFilters);
  const std::int64_t first_filter = *tiles.begin() * kFilters, end_filter = *tiles.end() * kFilters;
  const std::int64_t taps = g.kernel_height * g.kernel_width, filter = g.filter_elements();
  if (!accumulate) std::fill(dw + first_filter * filter, dw + end_filter * filter, 0.0f);
  const std::int64_t rows = rows_of_block(g);
  for (std::int64_t row = 0; row < g.batch * g.out_height(); row += rows) {
    const Block block(g, row, rows);
    const std::int64_t positions = (block.end - block.begin) * g.out_width();
    list_pairs(g, block, *panels);
    for (std::int64_t group = first_filter; group < end_filter; group += kGroup) {
      const std::int64_t group_end = std::min<std::int64_t>(group + kGroup, end_filter);
      for (std::int64_t o = group; o < group_end; o += kFilters)
        copy_panel<kFilters>(dy + block.begin * g.out_width() * g.out_channels + o, g.out_channels, positions,
                             panels->dy[(o - group) / kFilters]);
      for (std::int64_t i = 0; i < g.in_channels; i += kInputs) {
        copy_panel<kInputs>(x + block.in_begin * g.in_width * g.in_channels + i, g.in_channels,
                            (block.in_end - block.in_begin) * g.in_width, panels->x());
        for (std::int64_t tap = 0; tap < taps; ++tap)
          for (std::int64_t o = group; o < group_end; o += kFilters)
            add_tile(panels->pairs[tap], panels->counts[tap], panels->dy[(o - group) / kFilters], panels->x(),
                     dw + o * filter + tap * g.in_channels + i, filter);
      }
    }
  }
}

void wgrad(Stream& stream, const WgradArgs& args) {
  const Geometry& g = args.geometry;
  if (args.dtype != DType::f32 || !fits_panels(g)) return direct().wgrad(stream, args);
  check_args(args);
  simt::Config config = lib::rows_for(stream, g.out_channels / kFilters, g.out_elements() * g.filter_elements());
  config.grid.x = std::min(config.grid.x, simt::workers(stream));  // each block copies the panels of x
  config.shared_bytes = bytes_of(g, rows_of_block(g));
  simt::launch_flat<conv2d_wgrad_panels_kernel>(stream, config, g, static_cast<const float*>(args.x),
                                                static_cast<const float*>(args.dy), args.dw, args.accumulate);
}

std::size_t no_workspace(const Geometry&) { return 0; }
bool computes(DType dtype) { return dtype == DType::f32; }
bool supports(const Device& device, DType dtype) { return lib::supports_any(device, dtype) && computes(dtype); }

}  // namespace
}  // namespace panels

Variant panels_cpu() {
  return {"panels",         direct().forward, direct().dgrad, panels::wgrad, panels::no_workspace,
          panels::supports, panels::computes};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
