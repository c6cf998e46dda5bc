// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <utility>

#include "kernels/ops/conv_relu_pool/native.h"
#include "kernels/simt/simt.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

using lib::kNativeLanes;
using lib::NativeFloats;
using lib::NativeInts;

/// The non-zero gradients of a few samples, by output channel: how many, over which inputs, and how large. Each is a
/// point of the convolution's output; all others are zero and are skipped from here on.
struct Lists {
  std::size_t stride;     // entries that each channel has room for
  std::int32_t* counts;   // [outputs]
  std::int32_t* offsets;  // [outputs][stride]: of the first input under the kernel, in the group's samples
  float* values;          // [outputs][stride]
};

/// Vectors of a kernel row, and rows of the kernel, that are kept in registers at once.
constexpr int kMostVectors = 6;
constexpr int kMostRows = lib::kNativePairs >= 12 ? 3 : 1;

/// A part of the kernel: kRows rows of kVectors vectors, in memory `line` elements from row to
/// row.
template <int kRows, int kVectors>
struct Piece {
  NativeFloats parts[kRows][kVectors];

  void load(const float* from, std::ptrdiff_t line) {
    each(from, line, [](NativeFloats& part, const float* at) { part = lib::load(at); });
  }
  void store(float* to, std::ptrdiff_t line) {
    each(to, line, [](NativeFloats& part, float* at) { lib::store(at, part); });
  }
  /// Calls visit(part, its address). One pointer a row: the vectors of a row are then at constant distances.
  template <class Element, class Visit>
  void each(Element* memory, std::ptrdiff_t line, Visit visit) {
    SIMT_UNROLL
    for (int r = 0; r < kRows; ++r, memory += line) {
      SIMT_UNROLL
      for (int v = 0; v < kVectors; ++v) visit(parts[r][v], memory + v * kNativeLanes);
    }
  }
};

/// What one list does with one part of the kernel. x, dx: the inputs under it; w, dw: its weights, `run` between rows.
struct Work {
  const std::int32_t* offsets;
  const float* values;
  int count;
  std::ptrdiff_t line;  // between rows of x
  std::ptrdiff_t run;
};

Work work_of(const Layout& layout, const Lists& lists, int channel) {
  const std::size_t begin = static_cast<std::size_t>(channel) * lists.stride;
  return {.offsets = lists.offsets + begin,
          .values = lists.values + begin,
          .count = lists.counts[channel],
          .line = layout.line,
          .run = layout.padded_run};
}

/// dw += sum over the list of value * inputs.
template <int kRows, int kVectors>
void add_products(const Work& work, const float* x, float* dw) {
  Piece<kRows, kVectors> sums;
  sums.load(dw, work.run);
  for (int i = 0; i < work.count; ++i) {
    const float* from = x + work.offsets[i];
    const float value = work.values[i];
    sums.each(from, work.line, [value](NativeFloats& part, const float* at) { part += value * lib::load(at); });
  }
  sums.store(dw, work.run);
}

/// inputs' gradients += value * w, entry by entry.
template <int kRows, int kVectors>
void spread(const Work& work, const float* w, float* dx) {
  Piece<kRows, kVectors> weights;
  weights.load(w, work.run);
  for (int i = 0; i < work.count; ++i) {
    float* to = dx + work.offsets[i];
    const float value = work.values[i];
    weights.each(to, work.line,
                 [value](NativeFloats& part, float* at) { lib::store(at, lib::load(at) + value * part); });
  }
}

struct Passes {
  void (*add_products)(const Work&, const float*, float*);
  void (*spread)(const Work&, const float*, float*);
};

template <int kRows, int... kVectors>
constexpr std::array<Passes, sizeof...(kVectors)> passes_by_vectors(std::integer_sequence<int, kVectors...>) {
  return {Passes{add_products<kRows, kVectors + 1>, spread<kRows, kVectors + 1>}...};
}

/// Cuts the kernel into parts, and calls visit(passes for the part, offset in x, offset in w).
template <class Visit>
void for_each_piece(const Layout& layout, Visit visit) {
  using Vectors = std::make_integer_sequence<int, kMostVectors>;
  static constexpr std::array kPasses = {passes_by_vectors<1>(Vectors()), passes_by_vectors<kMostRows>(Vectors())};
  for (int row = 0; row < layout.rows;) {
    const bool many = layout.rows - row >= kMostRows;
    for (int at = 0; at < layout.padded_run; at += kMostVectors * kNativeLanes) {
      const int vectors = std::min(kMostVectors, (layout.padded_run - at) / kNativeLanes);
      visit(kPasses[many][static_cast<std::size_t>(vectors - 1)], row * layout.line + at, row * layout.padded_run + at);
    }
    row += many ? kMostRows : 1;
  }
}

/// Fills the lists for `samples` samples from `first` on, whose inputs are `sample_stride` apart.
void fill_lists(const Layout& layout, const Backward& pass, std::int64_t first, int samples, int sample_stride,
                const Lists& lists) {
  std::int32_t offset_of_code[16] = {};  // entries that are cut off are never read
  std::ranges::copy(layout.window_offsets, offset_of_code);
  const auto outputs = static_cast<std::size_t>(layout.outputs);
  std::fill_n(lists.counts, outputs, 0);
  const std::size_t before = static_cast<std::size_t>(first) * static_cast<std::size_t>(layout.cells);
  const float* dy = pass.dy + before * outputs;
  const std::uint8_t* codes = pass.codes + before * static_cast<std::size_t>(layout.code_bytes);
  for (int n = 0; n < samples; ++n)
    for (int cell = 0; cell < layout.cells; ++cell, dy += outputs, codes += layout.code_bytes) {
      const std::int32_t begin = n * sample_stride + layout.cell_begin(cell);
      // Without a branch: what is cut off is written too, and overwritten by the next.
      const auto append = [&](std::size_t o, unsigned code) {
        const std::int32_t count = lists.counts[o];
        const std::size_t entry = o * lists.stride + static_cast<std::size_t>(count);
        lists.offsets[entry] = begin + offset_of_code[code];
        lists.values[entry] = dy[o];
        lists.counts[o] = count + (code != kCutOff);
      };
      for (std::size_t o = 0; o + 1 < outputs; o += 2) {
        append(o, codes[o / 2] & 15u);
        append(o + 1, codes[o / 2] >> 4);
      }
      if (outputs % 2 != 0) append(outputs - 1, codes[outputs / 2] & 15u);
    }
}

/// dw, db += the products of the listed gradients and the inputs x. dw: [outputs][rows][padded_run]. The sums of a
/// part of a filter stay in registers for a whole list.
void add_products_of_lists(const Layout& layout, const Lists& lists, const float* x, float* dw, float* db) {
  for (int o = 0; o < layout.outputs; ++o) {
    const Work work = work_of(layout, lists, o);
    float* filter = dw + static_cast<std::size_t>(o) * static_cast<std::size_t>(layout.rows * layout.padded_run);
    for_each_piece(
        layout, [&](const Passes& passes, int in_x, int in_w) { passes.add_products(work, x + in_x, filter + in_w); });
    float sum = 0;
    for (int i = 0; i < work.count; ++i) sum += work.values[i];
    db[o] += sum;
  }
}

/// dx += the products of the listed gradients and the weights w, laid out as dw.
void spread_lists(const Layout& layout, const Lists& lists, const float* w, float* dx) {
  for (int o = 0; o < layout.outputs; ++o) {
    const Work work = work_of(layout, lists, o);
    const float* filter = w + static_cast<std::size_t>(o) * static_cast<std::size_t>(layout.rows * layout.padded_run);
    for_each_piece(layout,
                   [&](const Passes& passes, int in_x, int in_w) { passes.spread(work, filter + in_w, dx + in_x); });
  }
}

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

/// dw[t][c] += sum over cells of dy[cell][c] * the input at tap t of the element that c's code names; db[c] += that of
/// dy.
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
    for (int index = 0; index < layout.window_elements(); ++index) {
      const Pair here{code_low == index ? passing.low : NativeFloats{},
                      code_high == index ? passing.high : NativeFloats{}};
      const float* from = begin + layout.window_offsets[static_cast<std::size_t>(index)];
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

/// dw, db += the products of one sample, where the layout has few taps.
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

/// A worker's scratch memory: its partial gradients first (see backward_samples), then its tools.
struct Scratch {
  float* dw;
  float* db;
  float* x;   // a group of padded samples
  float* dx;  // their gradients
  Lists lists;

  Scratch(const Layout& layout, float* memory) {
    const auto take = [&memory](std::size_t elements) { return std::exchange(memory, memory + elements); };
    dw = take(layout.gradient_elements());
    db = dw + layout.gradient_elements() - layout.bias_elements();
    x = take(kGroup * layout.copy_elements());
    dx = take(kGroup * layout.copy_elements());
    const std::size_t entries = static_cast<std::size_t>(layout.outputs) * layout.list_elements();
    lists.stride = layout.list_elements();
    lists.values = take(entries);
    lists.offsets = reinterpret_cast<std::int32_t*>(take(entries));
    lists.counts = reinterpret_cast<std::int32_t*>(memory);
  }
};

bool needs_lists(const Layout& layout, const Backward& pass) { return !layout.few_taps || pass.dx; }

/// Whether samples are worked on in memory of our own: with zeros around them, and readable past the end.
bool copies(const Layout& layout, const Backward& pass) {
  return layout.pads() || (needs_lists(layout, pass) && layout.run != layout.padded_run);
}

/// The inputs of a group of samples and how far apart they are.
struct Group {
  std::int64_t first;
  int samples;
  const float* x;
  std::size_t stride;
};

Group group_at(const Layout& layout, const Backward& pass, std::int64_t first, std::int64_t end,
               const Scratch& scratch) {
  Group group{.first = first,
              .samples = static_cast<int>(std::min<std::int64_t>(kGroup, end - first)),
              .x = pass.x + static_cast<std::size_t>(first) * layout.sample_elements(),
              .stride = layout.sample_elements()};
  if (!copies(layout, pass)) return group;
  for (int n = 0; n < group.samples; ++n)
    pad(layout, group.x + static_cast<std::size_t>(n) * layout.sample_elements(),
        scratch.x + static_cast<std::size_t>(n) * layout.copy_elements());
  group.x = scratch.x;
  group.stride = layout.copy_elements();
  return group;
}

void spread_group(const Layout& layout, const Backward& pass, const Group& group, const Scratch& scratch) {
  float* dx = pass.dx + static_cast<std::size_t>(group.first) * layout.sample_elements();
  float* target = copies(layout, pass) ? scratch.dx : dx;
  std::fill_n(target, static_cast<std::size_t>(group.samples) * group.stride, 0.0f);
  spread_lists(layout, scratch.lists, pass.w, target);
  if (!copies(layout, pass)) return;
  for (int n = 0; n < group.samples; ++n)
    unpad(layout, scratch.dx + static_cast<std::size_t>(n) * layout.copy_elements(),
          dx + static_cast<std::size_t>(n) * layout.sample_elements());
}

}  // namespace

void backward_samples(const Layout& layout, const Backward& pass, std::int64_t begin, std::int64_t end, float* memory) {
  const Scratch scratch(layout, memory);
  std::fill_n(scratch.dw, layout.gradient_elements(), 0.0f);
  if (copies(layout, pass)) std::fill_n(scratch.x, kGroup * layout.copy_elements(), 0.0f);
  for (std::int64_t first = begin; first < end; first += kGroup) {
    const Group group = group_at(layout, pass, first, end, scratch);
    if (needs_lists(layout, pass))
      fill_lists(layout, pass, first, group.samples, static_cast<int>(group.stride), scratch.lists);
    if (!layout.few_taps)
      add_products_of_lists(layout, scratch.lists, group.x, scratch.dw, scratch.db);
    else
      for (int n = 0; n < group.samples; ++n)
        add_products_by_taps(layout, pass, first + n, group.x + static_cast<std::size_t>(n) * group.stride, scratch.dw,
                             scratch.db);
    if (pass.dx) spread_group(layout, pass, group, scratch);
  }
}

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
