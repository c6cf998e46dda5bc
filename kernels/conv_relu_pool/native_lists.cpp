// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv_relu_pool/native_lists.h"

#include <array>
#include <utility>

#include "kernels/simt/simt.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
namespace native {
namespace {

using lib::kNativeLanes;
using lib::NativeFloats;

/// Vectors of a kernel row, and rows of the kernel, that are kept in registers at once.
constexpr int kMostVectors = 6;
constexpr int kMostRows = lib::kNativePairs >= 12 ? 3 : 1;

/// A piece of the kernel: kRows rows of kVectors vectors, and what lies there in memory, `line` elements from row to row.
template <int kRows, int kVectors>
struct Piece {
  NativeFloats parts[kRows][kVectors];

  void load(const float* from, std::ptrdiff_t line) {
    each(from, line, [](NativeFloats& part, const float* at) { part = lib::load(at); });
  }
  void store(float* to, std::ptrdiff_t line) {
    each(to, line, [](NativeFloats& part, float* at) { lib::store(at, part); });
  }
  /// Calls visit(part, its place). One pointer a row: the vectors of a row are then at constant distances.
  template <class Element, class Visit>
  void each(Element* memory, std::ptrdiff_t line, Visit visit) {
    SIMT_UNROLL
    for (int r = 0; r < kRows; ++r, memory += line) {
      SIMT_UNROLL
      for (int v = 0; v < kVectors; ++v) visit(parts[r][v], memory + v * kNativeLanes);
    }
  }
};

/// What one list does with one piece of the kernel. x, dx: the inputs under it; w, dw: its weights, `run` between rows.
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

/// Cuts the kernel into pieces, and calls visit(passes for the piece, offset in x, offset in w).
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

}  // namespace

void fill_lists(const Layout& layout, const Backward& pass, std::int64_t first, int samples, int sample_stride,
                const Lists& lists) {
  std::int32_t place_offset[16] = {};  // nobody reads an entry that is cut off
  std::ranges::copy(layout.place_offsets, place_offset);
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
        lists.offsets[entry] = begin + place_offset[code];
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

void spread_lists(const Layout& layout, const Lists& lists, const float* w, float* dx) {
  for (int o = 0; o < layout.outputs; ++o) {
    const Work work = work_of(layout, lists, o);
    const float* filter = w + static_cast<std::size_t>(o) * static_cast<std::size_t>(layout.rows * layout.padded_run);
    for_each_piece(layout,
                   [&](const Passes& passes, int in_x, int in_w) { passes.spread(work, filter + in_w, dx + in_x); });
  }
}

}  // namespace native
}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
