// SPDX-License-Identifier: Apache-2.0
// Idea: for CPUs, depthwise: 16 neighbouring channels are two vectors, and a cache line in f32. Each worker first
//   transposes the weights, so that those of a kernel position are vectors, too; four neighbouring positions share
//   each of them, and keep eight sums in registers.
// Mapping: forward and dgrad: each worker takes rows of the result. wgrad: each worker takes channels, so that no sums of workers
//   have to be added up, and the bits do not depend on their number.
// Traffic and bound: each line of the operand once from memory; one load for each product; bound by loads.
// Gains over the step before: a vector instruction for 8 products; direct has one for each.
// Limits: kernels of more than 121 positions, and other geometries, are computed by the direct variant.

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/lib/element.h"
#include "kernels/lib/register_sums.h"
#include "kernels/lib/rows.h"
#include "kernels/ops/conv2d/epilogue.cuh"
#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"
#include "kernels/ops/grouped_conv2d/taps.cuh"
#include "kernels/simt/simt.h"

namespace gradring::kernels::grouped_conv2d {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

using lib::kLanes;
using lib::Lanes;

constexpr int kVectors = 2;               // of a tile of channels
constexpr int kTile = kVectors * kLanes;  // its channels
constexpr int kPositions = 4;             // that are computed together
constexpr std::int64_t kMostTaps = 11 * 11;
constexpr std::int64_t kMostWeights = 512;  // vectors of a tile that a worker keeps: 32 KB

/// A tile of channels, and how many of them exist: fewer only in the last one.
struct Tile {
  int first, width;

  Tile(int number, int channels) : first(number * kTile), width(std::min(kTile, channels - first)) {}
  /// Of vector v; of a whole tile the compiler knows them.
  template <bool kWhole>
  int lanes(int v) const {
    return kWhole ? kLanes : std::clamp(width - v * kLanes, 0, kLanes);
  }
};

template <class T>
Lanes load(const T* from, int lanes) {
  return lanes == kLanes ? lib::load_lanes(from) : lanes == 0 ? Lanes{} : lib::load_lanes(from, lanes);
}

template <class T>
void store(T* to, const Lanes& values, int lanes) {
  if (std::is_same_v<T, float> && lanes == kLanes)
    std::memcpy(to, &values, sizeof values);
  else
    for (int l = 0; l < lanes; ++l) to[l] = lib::from_f32<T>(values[l]);
}

/// w of a tile, [channels][taps], as vectors of channels.
template <class T>
void load_weights(const T* w, int taps, const Tile& tile, Lanes (*weights)[kVectors]) {
  for (int tap = 0; tap < taps; ++tap)
    for (int v = 0; v < kVectors; ++v)
      for (int l = 0; l < kLanes; ++l)
        weights[tap][v][l] =
            v * kLanes + l < tile.width ? lib::to_f32(w[std::int64_t{tile.first + v * kLanes + l} * taps + tap]) : 0.0f;
}

/// The kernel positions that link a position of the result to the operand, and where in a sample.
struct Links {
  int count = 0;
  int taps[kMostTaps];
  std::ptrdiff_t offsets[kMostTaps];

  template <class Axis>
  Links(const DepthwisePass<Axis>& pass, int row, int col) {
    for (int kh = 0; kh < pass.kernel_height; ++kh) {
      const int from_row = pass.rows.source(row, kh);
      if (from_row < 0) continue;
      for (int kw = 0; kw < pass.kernel_width; ++kw) {
        const int from_col = pass.cols.source(col, kw);
        if (from_col < 0) continue;
        taps[count] = kh * pass.kernel_width + kw;
        offsets[count++] = (std::ptrdiff_t{from_row} * pass.operand_width + from_col) * pass.channels;
      }
    }
  }
};

/// A tile of kCount neighbouring results, whose operands are `step` apart. Pointers are at the tile's first channel.
template <int kCount, bool kWhole, class T>
void compute(const Links& links, const Lanes (*weights)[kVectors], const T* operand, std::ptrdiff_t step, T* result,
             std::ptrdiff_t channels, const Tile& tile, const conv2d::Epilogue<T>& epilogue) {
  Lanes sums[kCount][kVectors] = {};
  if (epilogue.bias)
    for (int v = 0; v < kVectors; ++v) {
      const Lanes bias = load(epilogue.bias + tile.first + v * kLanes, tile.lanes<kWhole>(v));
      for (int p = 0; p < kCount; ++p) sums[p][v] = bias;
    }
  for (int link = 0; link < links.count; ++link) {
    const Lanes* here = weights[links.taps[link]];
    const T* from = operand + links.offsets[link];
    SIMT_UNROLL
    for (int p = 0; p < kCount; ++p)
      for (int v = 0; v < kVectors; ++v)
        lib::add_product(sums[p][v], load(from + p * step + v * kLanes, tile.lanes<kWhole>(v)), here[v]);
  }
  if (epilogue.relu)
    for (int p = 0; p < kCount; ++p)
      for (int v = 0; v < kVectors; ++v)
        for (int l = 0; l < kLanes; ++l) sums[p][v][l] = epilogue.clamped(sums[p][v][l]);
  for (int p = 0; p < kCount; ++p)
    for (int v = 0; v < kVectors; ++v) store(result + p * channels + v * kLanes, sums[p][v], tile.lanes<kWhole>(v));
}

/// From one result to the next, in columns of the operand; 0: they have other kernel positions.
int step_of(const ForwardAxis& axis) { return axis.stride; }
int step_of(const DgradAxis& axis) { return axis.stride == 1 ? 1 : 0; }

/// Whether kPositions results from `col` on have all their operands, each one step behind that of its neighbour.
template <class Axis>
bool are_alike(const Axis& axis, int col, int kernel_width) {
  const int step = step_of(axis);
  for (const int kw : {0, kernel_width - 1}) {
    const int first = axis.source(col, kw), last = axis.source(col + kPositions - 1, kw);
    if (first < 0 || last != first + (kPositions - 1) * step) return false;
  }
  return step > 0;
}

template <class T, class Axis>
void gather_kernel(SIMT_GRID_CONST(DepthwisePass<Axis>) pass, const T* operand, const T* w, T* result,
                   conv2d::Epilogue<T> epilogue) {
  Lanes weights[kMostWeights][kVectors];
  const int taps = pass.taps();
  const int tiles = lib::strips(pass.channels, kTile);
  const int most = static_cast<int>(kMostWeights) / taps;  // tiles whose weights are kept
  const std::ptrdiff_t step = std::ptrdiff_t{step_of(pass.cols)} * pass.channels;
  for (int first = 0; first < tiles; first += most) {
    const int end = std::min(tiles, first + most);
    for (int number = first; number < end; ++number)
      load_weights(w, taps, Tile(number, pass.channels), weights + (number - first) * taps);
    for (std::int64_t row : lib::row_range(pass.batch * pass.height)) {
      const std::int64_t n = row / pass.height;
      const T* sample = operand + n * pass.operand_height * pass.operand_width * pass.channels;
      for (int col = 0; col < pass.width;) {
        const bool several = col + kPositions <= pass.width && are_alike(pass.cols, col, pass.kernel_width);
        const Links links(pass, static_cast<int>(row - n * pass.height), col);
        T* const to = result + (row * pass.width + col) * pass.channels;
        for (int number = first; number < end; ++number) {
          const Tile tile(number, pass.channels);
          const auto pass_on = [&](auto count, auto whole) {
            compute<count.value, whole.value>(links, weights + (number - first) * taps, sample + tile.first, step,
                                              to + tile.first, pass.channels, tile, epilogue);
          };
          lib::with_bool(tile.width == kTile, [&](auto whole) {
            if (several)
              pass_on(std::integral_constant<int, kPositions>(), whole);
            else
              pass_on(std::integral_constant<int, 1>(), whole);
          });
        }
        col += several ? kPositions : 1;
      }
    }
  }
}

/// The positions [first, end) of a row of y whose input at kernel column `kw` exists.
struct Columns {
  int first, end;

  Columns(const ForwardAxis& axis, int width, int kw) : first(0), end(width) {
    while (first < end && axis.source(first, kw) < 0) ++first;
    while (end > first && axis.source(end - 1, kw) < 0) --end;
  }
};

/// sums[v] += dy * x over a row, for one kernel position.
template <bool kWhole, class T>
void add_row(const DepthwisePass<ForwardAxis>& pass, const Tile& tile, const Columns& columns, int kw, const T* x_line,
             const T* dy_line, Lanes (&sums)[kVectors]) {
  Lanes own[2][kVectors] = {};  // of even and odd columns, so that additions wait for each other half as often
  const auto add = [&](int col, Lanes(&to)[kVectors]) {
    const T* x = x_line + (col * pass.cols.stride + kw - pass.cols.padding) * pass.channels;
    for (int v = 0; v < kVectors; ++v)
      lib::add_product(to[v], load(dy_line + col * pass.channels + v * kLanes, tile.lanes<kWhole>(v)),
                       load(x + v * kLanes, tile.lanes<kWhole>(v)));
  };
  int col = columns.first;
  for (; col + 2 <= columns.end; col += 2) {
    add(col, own[0]);
    add(col + 1, own[1]);
  }
  if (col < columns.end) add(col, own[0]);
  for (int v = 0; v < kVectors; ++v) sums[v] += own[0][v] + own[1][v];
}

template <class T>
void wgrad_kernel(SIMT_GRID_CONST(DepthwisePass<ForwardAxis>) pass, const T* x, const T* dy, float* dw,
                  bool accumulate) {
  Lanes totals[kMostTaps][kVectors];
  const int taps = pass.taps();
  for (std::int64_t number : lib::row_range(lib::strips(pass.channels, kTile))) {
    const Tile tile(static_cast<int>(number), pass.channels);
    std::fill_n(&totals[0][0], taps * kVectors, Lanes{});
    for (std::int64_t n = 0; n < pass.batch; ++n)
      for (int kh = 0; kh < pass.kernel_height; ++kh)
        for (int kw = 0; kw < pass.kernel_width; ++kw) {
          const Columns columns(pass.cols, pass.width, kw);
          Lanes sums[kVectors] = {};
          for (int row = 0; row < pass.height; ++row) {
            const int source = pass.rows.source(row, kh);
            if (source < 0) continue;
            lib::with_bool(tile.width == kTile, [&](auto whole) {
              add_row<whole.value>(
                  pass, tile, columns, kw,
                  x + (n * pass.operand_height + source) * pass.operand_width * pass.channels + tile.first,
                  dy + (n * pass.height + row) * pass.width * pass.channels + tile.first, sums);
            });
          }
          for (int v = 0; v < kVectors; ++v) totals[kh * pass.kernel_width + kw][v] += sums[v];
        }
    for (int c = 0; c < tile.width; ++c)
      for (int tap = 0; tap < taps; ++tap) {
        float& to = dw[std::int64_t{tile.first + c} * taps + tap];
        to = totals[tap][c / kLanes][c % kLanes] + (accumulate ? to : 0.0f);
      }
  }
}

bool is_for_us(const Geometry& g) { return g.is_depthwise() && g.taps() <= kMostTaps; }

template <class T, class Axis>
void enqueue_gather(Stream& stream, const Geometry& g, const DepthwisePass<Axis>& pass, const void* operand,
                    const void* w, void* result, const conv2d::Epilogue<T>& epilogue) {
  simt::launch_flat<gather_kernel<T, Axis>>(
      stream, lib::rows_for(stream, g.batch * pass.height, g.out_elements() * g.taps()), pass,
      static_cast<const T*>(operand), static_cast<const T*>(w), static_cast<T*>(result), epilogue);
}

void forward(Stream& stream, const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_forward(stream, args);
  if (g.out_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    enqueue_gather<T>(stream, g, forward_pass(g), args.x, args.w, args.y, conv2d::Epilogue<T>(args));
  });
}

void dgrad(Stream& stream, const DgradArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_dgrad(stream, args);
  if (g.in_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    enqueue_gather<T>(stream, g, dgrad_pass(g), args.dy, args.w, args.dx, {});
  });
}

void wgrad(Stream& stream, const WgradArgs& args) {
  const Geometry& g = args.geometry;
  check_args(args);
  if (!is_for_us(g)) return direct_wgrad(stream, args);
  if (g.weight_elements() == 0) return;
  lib::with_element(args.dtype, [&]<class T>(lib::Element<T>) {
    simt::launch_flat<wgrad_kernel<T>>(
        stream, lib::rows_for(stream, lib::strips(g.in_channels, kTile), g.out_elements() * g.taps()), forward_pass(g),
        static_cast<const T*>(args.x), static_cast<const T*>(args.dy), args.dw, args.accumulate);
  });
}

std::size_t no_workspace(const Geometry&) { return 0; }
bool supports(const Device& device, DType dtype) { return lib::supports_any(device, dtype) && lib::is_floating(dtype); }

}  // namespace
}  // namespace native

Variant native_cpu() {
  return {"native", native::forward, native::dgrad, native::wgrad, native::no_workspace, native::supports};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::grouped_conv2d
