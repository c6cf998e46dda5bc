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

/// Taps (inputs under a kernel) whose sums for a block of channels fit into registers.
constexpr int kMostTaps = lib::kNativePairs >= 12 ? 9 : 4;

/// A block of channels.
struct Pair {
  NativeFloats low, high;

  void add_product(float factor, const Pair& other) {
    low += factor * other.low;
    high += factor * other.high;
  }
};

Pair load_pair(const float* from) { return {lib::load(from), lib::load(from + kNativeLanes)}; }

void store_pair(float* to, const Pair& pair) {
  lib::store(to, pair.low);
  lib::store(to + kNativeLanes, pair.high);
}

/// The gradients of one sample and block of channels.
struct Block {
  const float* x;
  const float* dy;
  const std::uint8_t* codes;
  int low, high;  // channels in the block's two vectors
};

/// dw[t][c] += sum over cells of dy[cell][c] * the input at tap t of the place that c's code names; db[c] += that of dy.
template <int kTaps>
void add_taps(const Layout& layout, const Block& block, const int* tap_offsets, float* dw, float* db) {
  const int width = layout.blocks * kBlock;
  Pair sums[kTaps];
  Pair bias = load_pair(db);
  SIMT_UNROLL
  for (int t = 0; t < kTaps; ++t) sums[t] = load_pair(dw + t * width);
  const float* dy = block.dy;
  const std::uint8_t* codes = block.codes;
  for (int cell = 0; cell < layout.cells; ++cell, dy += layout.outputs, codes += layout.code_bytes) {
    const Pair passing{lib::load(dy, block.low), lib::load(dy + kNativeLanes, block.high)};
    const NativeInts code_low = lib::load_half_bytes(codes, block.low);
    const NativeInts code_high = lib::load_half_bytes(codes + kNativeLanes / 2, block.high);
    const float* begin = block.x + layout.cell_begin(cell);
    for (int place = 0; place < layout.places(); ++place) {
      const Pair here{code_low == place ? passing.low : NativeFloats{},
                      code_high == place ? passing.high : NativeFloats{}};
      const float* from = begin + layout.place_offsets[static_cast<std::size_t>(place)];
      bias.add_product(1.0f, here);
      SIMT_UNROLL
      for (int t = 0; t < kTaps; ++t) sums[t].add_product(from[tap_offsets[t]], here);
    }
  }
  store_pair(db, bias);
  SIMT_UNROLL
  for (int t = 0; t < kTaps; ++t) store_pair(dw + t * width, sums[t]);
}

using AddTaps = void (*)(const Layout&, const Block&, const int*, float*, float*);

template <int... kCounts>
constexpr std::array<AddTaps, sizeof...(kCounts)> add_taps_by_count(std::integer_sequence<int, kCounts...>) {
  return {add_taps<kCounts + 1>...};
}

}  // namespace

void add_products_by_taps(const Layout& layout, const Backward& pass, std::int64_t sample, const float* x, float* dw,
                          float* db) {
  static constexpr auto kAddTaps = add_taps_by_count(std::make_integer_sequence<int, kMostTaps>());
  const int width = layout.blocks * kBlock;
  const int taps = layout.rows * layout.run;
  const std::size_t out = static_cast<std::size_t>(sample) * static_cast<std::size_t>(layout.cells * layout.outputs);
  const std::uint8_t* codes = pass.codes + sample * layout.cells * layout.code_bytes;
  for (int channel = 0; channel < layout.outputs; channel += kBlock) {
    const int left = layout.outputs - channel;
    const Block block{.x = x,
                      .dy = pass.dy + out + channel,
                      .codes = codes + channel / 2,
                      .low = std::min(left, kNativeLanes),
                      .high = std::clamp(left - kNativeLanes, 0, kNativeLanes)};
    float unused[kBlock] = {};  // the bias's sum is taken once
    for (int tap = 0; tap < taps; tap += kMostTaps) {
      const int count = std::min(kMostTaps, taps - tap);
      int offsets[kMostTaps] = {};
      for (int t = 0; t < count; ++t) offsets[t] = (tap + t) / layout.run * layout.line + (tap + t) % layout.run;
      kAddTaps[static_cast<std::size_t>(count - 1)](layout, block, offsets, dw + tap * width + channel,
                                                    tap == 0 ? db + channel : unused);
    }
  }
}

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
