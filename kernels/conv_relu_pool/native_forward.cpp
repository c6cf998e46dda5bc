// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <utility>

#include "kernels/conv_relu_pool/native.h"
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
    std::int32_t place = 0;
    for (int i = 0; i < window; ++i)
      for (int j = 0; j < window; ++j, ++place) {
        const NativeFloats value = lib::load(corner + (i * pixels + j) * kBlock);
        const NativeInts takes = (value > best) | lib::is_nan(value);  // a NaN takes all, and no number takes it back
        best = takes ? value : best;
        code = takes ? NativeInts{} + place : code;
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

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
