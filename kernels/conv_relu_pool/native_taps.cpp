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

/// The gradients of one sample and block of channels.
struct Block {
  const float* x;
  const float* dy;
  const std::uint8_t* codes;
  int low, high;  // channels in the block's two vectors
};

/// dw[t][c] += sum over cells of dy[cell][c] * the input at tap t of the place that c's code names.
template <int kTaps>
void add_taps(const Layout& layout, const Block& block, const int* tap_offsets, float* dw, int width) {
  NativeFloats low[kTaps], high[kTaps];
  SIMT_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    low[t] = lib::load(dw + t * width);
    high[t] = lib::load(dw + t * width + kNativeLanes);
  }
  const int places = layout.window() * layout.window();
  for (int cell = 0; cell < layout.cells; ++cell) {
    const float* dy = block.dy + cell * layout.outputs;
    const std::uint8_t* codes = block.codes + cell * layout.outputs;
    const NativeFloats dy_low = lib::load(dy, block.low);
    const NativeFloats dy_high = lib::load(dy + kNativeLanes, block.high);
    const NativeInts code_low = lib::load_bytes(codes, block.low);
    const NativeInts code_high = lib::load_bytes(codes + kNativeLanes, block.high);
    const float* begin = block.x + layout.cell_begin(cell);
    for (int place = 0; place < places; ++place) {
      const NativeFloats here_low = code_low == place ? dy_low : NativeFloats{};
      const NativeFloats here_high = code_high == place ? dy_high : NativeFloats{};
      const float* from = begin + layout.place_offset(place);
      SIMT_UNROLL
      for (int t = 0; t < kTaps; ++t) {
        const float input = from[tap_offsets[t]];
        low[t] += input * here_low;
        high[t] += input * here_high;
      }
    }
  }
  SIMT_UNROLL
  for (int t = 0; t < kTaps; ++t) {
    lib::store(dw + t * width, low[t]);
    lib::store(dw + t * width + kNativeLanes, high[t]);
  }
}

using AddTaps = void (*)(const Layout&, const Block&, const int*, float*, int);

template <int... kCounts>
constexpr std::array<AddTaps, sizeof...(kCounts)> add_taps_by_count(std::integer_sequence<int, kCounts...>) {
  return {add_taps<kCounts + 1>...};
}

void add_biases(const Layout& layout, const Block& block, float* db) {
  NativeFloats low = lib::load(db), high = lib::load(db + kNativeLanes);
  for (int cell = 0; cell < layout.cells; ++cell) {
    const float* dy = block.dy + cell * layout.outputs;
    const std::uint8_t* codes = block.codes + cell * layout.outputs;
    low += lib::load_bytes(codes, block.low) == kCutOff ? NativeFloats{} : lib::load(dy, block.low);
    high += lib::load_bytes(codes + kNativeLanes, block.high) == kCutOff ? NativeFloats{}
                                                                         : lib::load(dy + kNativeLanes, block.high);
  }
  lib::store(db, low);
  lib::store(db + kNativeLanes, high);
}

}  // namespace

void add_products_by_taps(const Layout& layout, const Backward& pass, std::int64_t sample, const float* x, float* dw,
                          float* db) {
  static constexpr auto kAddTaps = add_taps_by_count(std::make_integer_sequence<int, kMostTaps>());
  const int width = layout.blocks * kBlock;
  const int taps = layout.rows * layout.run;
  const std::size_t out = static_cast<std::size_t>(sample) * static_cast<std::size_t>(layout.cells * layout.outputs);
  for (int channel = 0; channel < layout.outputs; channel += kBlock) {
    const int left = layout.outputs - channel;
    const Block block{.x = x,
                      .dy = pass.dy + out + channel,
                      .codes = pass.codes + out + channel,
                      .low = std::min(left, kNativeLanes),
                      .high = std::clamp(left - kNativeLanes, 0, kNativeLanes)};
    for (int tap = 0; tap < taps; tap += kMostTaps) {
      const int count = std::min(kMostTaps, taps - tap);
      int offsets[kMostTaps] = {};
      for (int t = 0; t < count; ++t) offsets[t] = (tap + t) / layout.run * layout.line + (tap + t) % layout.run;
      kAddTaps[static_cast<std::size_t>(count - 1)](layout, block, offsets, dw + tap * width + channel, width);
    }
    add_biases(layout, block, db + channel);
  }
}

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
