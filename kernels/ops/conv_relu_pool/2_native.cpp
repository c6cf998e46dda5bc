// SPDX-License-Identifier: Apache-2.0
// Idea: for a CPU, the same operation in the processor's own vectors: a row of the convolution for 32 channels is
//   summed up in registers, pooled while it is in the first-level cache, and never stored. Backward first lists the
//   gradients that pass: one element of each window, and none where ReLU has cut it off.
// Mapping: a worker per run of samples. Vectors run along the output channels in forward and along the inputs under a
//   kernel row in backward, which are neighbours in NHWC and OHWI alike.
// Traffic and bound: each weight that is loaded serves up to 13 pixels, so forward is bound by arithmetic; backward
//   loads an input for each product, and is bound by the first-level cache.
// Gains over the step before: nothing is computed twice; no output of the convolution exists; most of backward is
//           skipped.
// Still slow because: forward multiplies in full what Winograd's transform would not; lists are filled one by one.
// Limits: f32; a sample, a filter and a batch's workers are counted in int.

#include <array>
#include <utility>

#include "kernels/lib/element.h"
#include "kernels/lib/rows.h"
#include "kernels/lib/split_k.h"
#include "kernels/ops/conv_relu_pool/native.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

using lib::kNativeLanes;
using lib::NativeFloats;
using lib::NativeInts;

constexpr auto kNothing = static_cast<std::int32_t>(kCutOff);

/// sums[p][c] = bias[c] + what kBlock filters make of the inputs at x + p * step. All sums stay in registers, and each
/// weight that is loaded serves kPixels of them.
template <int kPixels>
void convolve(const Layout& layout, const float* x, const float* packed, float* sums) {
  NativeFloats low[kPixels], high[kPixels];
  SIMT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    low[p] = lib::load(packed);
    high[p] = lib::load(packed + kNativeLanes);
  }
  const int step = layout.step();
  for (int row = 0; row < layout.rows; ++row)
    for (int i = 0; i < layout.run; ++i) {
      packed += kBlock;
      const NativeFloats w_low = lib::load(packed);
      const NativeFloats w_high = lib::load(packed + kNativeLanes);
      SIMT_UNROLL
      for (int p = 0; p < kPixels; ++p) {
        const float input = x[row * layout.line + p * step + i];
        low[p] += input * w_low;
        high[p] += input * w_high;
      }
    }
  SIMT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    lib::store(sums + p * kBlock, low[p]);
    lib::store(sums + p * kBlock + kNativeLanes, high[p]);
  }
}

using Convolve = void (*)(const Layout&, const float*, const float*, float*);

template <int... kCounts>
constexpr std::array<Convolve, sizeof...(kCounts)> convolve_by_pixels(std::integer_sequence<int, kCounts...>) {
  return {convolve<kCounts + 1>...};
}

/// One row of the convolution, for one block of channels: as few strips as registers allow, of nearly equal length.
void convolve_row(const Layout& layout, const float* x, const float* packed, float* sums) {
  static constexpr auto kConvolve = convolve_by_pixels(std::make_integer_sequence<int, lib::kNativePairs>());
  const int pixels = layout.cells_across * layout.window();  // those beyond belong to no window
  const int strips = (pixels + lib::kNativePairs - 1) / lib::kNativePairs;
  for (int strip = 0, begin = 0; strip < strips; ++strip) {
    const int end = (strip + 1) * pixels / strips;
    kConvolve[static_cast<std::size_t>(end - begin - 1)](layout, x + begin * layout.step(), packed,
                                                         sums + begin * kBlock);
    begin = end;
  }
}

/// The largest sum of each window of one row of cells and its code, for `count` channels.
void pool_row(const Layout& layout, const float* sums, int count, float* y, std::uint8_t* codes) {
  const int window = layout.window();
  const int pixels = layout.cells_across * window;
  for (int cell = 0; cell < layout.cells_across; ++cell) {
    const float* corner = sums + cell * window * kBlock;
    NativeFloats best = lib::load(corner);
    NativeInts code = {};
    std::int32_t index = 0;
    for (int i = 0; i < window; ++i)
      for (int j = 0; j < window; ++j, ++index) {
        const NativeFloats value = lib::load(corner + (i * pixels + j) * kBlock);
        const NativeInts takes = (value > best) | lib::is_nan(value);  // a NaN takes all, and no number takes it back
        best = takes ? value : best;
        code = takes ? NativeInts{} + index : code;
      }
    const NativeInts cut_off = best <= 0;
    lib::store(y + cell * layout.outputs, cut_off ? NativeFloats{} : best, count);
    lib::store_half_bytes(codes + cell * layout.code_bytes, cut_off ? NativeInts{} + kNothing : code, count, kNothing);
  }
}

void forward_sample(const Layout& layout, const Forward& pass, const float* x, std::int64_t sample, float* sums) {
  const int window = layout.window();
  const int row_of_sums = layout.cells_across * window * kBlock;
  const int cells_down = layout.cells / layout.cells_across;
  // A block's weights stay in the first-level cache while the sample goes by.
  for (int block = 0; block < layout.blocks; ++block) {
    const float* packed = pass.packed + static_cast<std::size_t>(block) * (layout.rows * layout.run + 1) * kBlock;
    const int channels = std::min(kBlock, layout.outputs - block * kBlock);
    for (int down = 0; down < cells_down; ++down) {
      for (int i = 0; i < window; ++i)
        convolve_row(layout, x + (down * window + i) * layout.stride() * layout.line, packed, sums + i * row_of_sums);
      const std::size_t cell = static_cast<std::size_t>(sample) * static_cast<std::size_t>(layout.cells) +
                               static_cast<std::size_t>(down * layout.cells_across);
      float* y = pass.y + cell * static_cast<std::size_t>(layout.outputs) + block * kBlock;
      std::uint8_t* codes = pass.codes + cell * static_cast<std::size_t>(layout.code_bytes) + block * kBlock / 2;
      for (int lane = 0; lane < channels; lane += kNativeLanes)
        pool_row(layout, sums + lane, std::min(kNativeLanes, channels - lane), y + lane, codes + lane / 2);
    }
  }
}

}  // namespace

void forward_samples(const Layout& layout, const Forward& pass, std::int64_t begin, std::int64_t end, float* scratch) {
  float* padded = scratch;
  float* sums = scratch + layout.copy_elements();
  if (layout.pads()) std::fill_n(padded, layout.copy_elements(), 0.0f);
  for (std::int64_t n = begin; n < end; ++n) {
    const float* x = pass.x + static_cast<std::size_t>(n) * layout.sample_elements();
    if (layout.pads()) pad(layout, x, padded);
    forward_sample(layout, pass, layout.pads() ? padded : x, n, sums);
  }
}

void pad(const Layout& layout, const float* sample, float* padded) {
  const auto& conv = layout.g.conv;
  const auto columns = static_cast<std::size_t>(conv.in_width * conv.in_channels);
  for (std::int64_t row = 0; row < conv.in_height; ++row)
    std::copy_n(sample + static_cast<std::size_t>(row) * columns, columns,
                padded + (row + conv.padding) * layout.line + conv.padding * conv.in_channels);
}

void unpad(const Layout& layout, const float* padded, float* sample) {
  const auto& conv = layout.g.conv;
  const auto columns = static_cast<std::size_t>(conv.in_width * conv.in_channels);
  for (std::int64_t row = 0; row < conv.in_height; ++row)
    std::copy_n(padded + (row + conv.padding) * layout.line + conv.padding * conv.in_channels, columns,
                sample + static_cast<std::size_t>(row) * columns);
}

namespace {

/// The shared part comes first, then one part per worker.
std::size_t workspace_bytes(const Geometry& geometry) {
  const Layout layout(geometry);
  const std::size_t shared = std::max(layout.packed_elements(), layout.gradient_elements());
  return (shared + kMostWorkers * std::max(layout.forward_scratch(), layout.backward_scratch())) * sizeof(float);
}

/// [outputs][rows * run] -> [blocks][1 + rows * run][kBlock], biases first, zeros for channels that do not exist.
void pack_filters_kernel(SIMT_GRID_CONST(Layout) layout, const float* __restrict__ w, const float* __restrict__ b,
                         float* __restrict__ packed) {
  const int taps = layout.rows * layout.run;
  for (int block = 0; block < layout.blocks; ++block)
    for (int tap = -1; tap < taps; ++tap)
      for (int lane = 0; lane < kBlock; ++lane) {
        const int o = block * kBlock + lane;
        const float* from = tap < 0 ? b + o : w + static_cast<std::size_t>(o) * static_cast<std::size_t>(taps) + tap;
        *packed++ = o < layout.outputs ? *from : 0.0f;
      }
}

/// [outputs][rows][run] -> [outputs][rows][padded_run], zeros after each run.
void pad_filters_kernel(SIMT_GRID_CONST(Layout) layout, const float* __restrict__ w, float* __restrict__ padded) {
  const std::size_t runs = static_cast<std::size_t>(layout.outputs) * static_cast<std::size_t>(layout.rows);
  for (std::size_t i = 0; i < runs; ++i, w += layout.run, padded += layout.padded_run) {
    std::copy_n(w, layout.run, padded);
    std::fill(padded + layout.run, padded + layout.padded_run, 0.0f);
  }
}

void forward_kernel(SIMT_GRID_CONST(Layout) layout, SIMT_GRID_CONST(Forward) pass, float* scratch) {
  const auto samples = lib::row_range(layout.g.conv.batch);
  forward_samples(layout, pass, *samples.begin(), *samples.end(), scratch + blockIdx.x * layout.forward_scratch());
}

void backward_kernel(SIMT_GRID_CONST(Layout) layout, SIMT_GRID_CONST(Backward) pass, float* scratch) {
  const auto samples = lib::row_range(layout.g.conv.batch);
  backward_samples(layout, pass, *samples.begin(), *samples.end(), scratch + blockIdx.x * layout.backward_scratch());
}

/// Adds up the workers' partial gradients, in their order, in the layout of the caller.
void sum_slices_kernel(SIMT_GRID_CONST(Layout) layout, const float* __restrict__ slices, int workers,
                       float* __restrict__ dw, float* __restrict__ db, bool accumulate) {
  const auto stride = static_cast<std::int64_t>(layout.backward_scratch());
  const auto total = [&](std::size_t at) { return lib::sum_of_slices(slices, workers, 1, stride, at); };
  const std::size_t biases = layout.gradient_elements() - layout.bias_elements();
  for (int o = 0; o < layout.outputs; ++o) {
    const auto channel = static_cast<std::size_t>(o);
    db[o] = total(biases + channel) + (accumulate ? db[o] : 0.0f);
    for (int row = 0; row < layout.rows; ++row)
      for (int i = 0; i < layout.run; ++i, ++dw) {
        const auto tap = static_cast<std::size_t>(row * layout.run + i);
        const std::size_t at = layout.few_taps
                                   ? tap * layout.bias_elements() + channel
                                   : (channel * static_cast<std::size_t>(layout.rows) + static_cast<std::size_t>(row)) *
                                             static_cast<std::size_t>(layout.padded_run) +
                                         static_cast<std::size_t>(i);
        *dw = total(at) + (accumulate ? *dw : 0.0f);
      }
  }
}

simt::Config one_thread_each(int workers) { return {.grid = dim3(static_cast<unsigned>(workers)), .block = dim3(1)}; }

int workers_on(Stream& stream, std::int64_t batch) {
  const simt::Config config = simt::grid_for(stream, static_cast<std::size_t>(batch) * 4096);
  const auto most = std::min<std::int64_t>({batch, static_cast<std::int64_t>(config.grid.x), kMostWorkers});
  return static_cast<int>(std::max<std::int64_t>(most, 1));
}

void forward(Stream& stream, const ForwardArgs& args) {
  check_args(args);
  check_x_dtype(args.dtype, args.x_dtype);
  if (args.geometry.out_elements() == 0) return;
  lib::check_pointer("conv_relu_pool forward", "workspace", args.workspace);
  const Layout layout(args.geometry);
  auto* packed = static_cast<float*>(args.workspace);
  const int workers = workers_on(stream, args.geometry.conv.batch);
  simt::launch_flat<pack_filters_kernel>(stream, one_thread_each(1), layout, static_cast<const float*>(args.w),
                                         static_cast<const float*>(args.b), packed);
  simt::launch_flat<forward_kernel>(stream, one_thread_each(workers), layout,
                                    Forward{.x = static_cast<const float*>(args.x),
                                            .packed = packed,
                                            .y = static_cast<float*>(args.y),
                                            .codes = args.codes},
                                    packed + layout.packed_elements());
}

void backward(Stream& stream, const BackwardArgs& args) {
  check_args(args);
  check_x_dtype(args.dtype, args.x_dtype);
  lib::check_pointer("conv_relu_pool backward", "workspace", args.workspace);
  const Layout layout(args.geometry);
  auto* padded = static_cast<float*>(args.workspace);
  float* scratch = padded + layout.gradient_elements();
  const auto* w = static_cast<const float*>(args.w);
  const bool pads_filters = args.dx && layout.run != layout.padded_run;
  const int workers = workers_on(stream, args.geometry.conv.batch);
  if (pads_filters) simt::launch_flat<pad_filters_kernel>(stream, one_thread_each(1), layout, w, padded);
  simt::launch_flat<backward_kernel>(stream, one_thread_each(workers), layout,
                                     Backward{.x = static_cast<const float*>(args.x),
                                              .w = pads_filters ? padded : w,
                                              .dy = static_cast<const float*>(args.dy),
                                              .codes = args.codes,
                                              .dx = static_cast<float*>(args.dx)},
                                     scratch);
  simt::launch_flat<sum_slices_kernel>(stream, one_thread_each(1), layout, scratch, workers, args.dw, args.db,
                                       args.accumulate);
}

bool computes(DType dtype) { return dtype == DType::f32; }
bool supports(const Device& device, DType dtype) { return lib::supports_any(device, dtype) && computes(dtype); }

}  // namespace
}  // namespace native

Variant native_cpu() {
  return {"native", native::forward, native::backward, native::workspace_bytes, native::supports, native::computes};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
