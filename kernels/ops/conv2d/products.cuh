// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/lib/element.h"
#include "kernels/ops/conv2d/patches.cuh"
#include "kernels/simt/simt.h"

/// The three passes as matrix products C = A B, with views of x, w and dy as A and B, and C a plain matrix:
///
///   pass      rows of C         columns of C      depth (summed over)   A                  B
///   forward   (n, oh, ow)       o                 (kh, kw, i)           patches of x       w
///   dgrad     (n, ih, iw)       i                 (kh, kw, o)           patches of dy      w, its lines reordered
///   wgrad     o                 (kh, kw, i)       (n, oh, ow)           dy                 patches of x
///
/// An operand is a stack of lines that are contiguous in memory, at least in pieces: `line(index)` is worked out once,
/// `at(line, position)` is the address of one element of it, or null where there is none (padding, or beyond the end):
/// it counts as 0. In a `wide` operand, pieces of 16 bytes that start at multiples of 16 bytes are contiguous and
/// aligned, and are there or not there as a whole.
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// What an operand's lines are indexed by; their elements are indexed by the other one.
enum class Lines {
  outer,  ///< A's rows, B's columns: the depth runs along a line
  depth,
};

/// Whether 16-byte pieces of runs of `run` elements that lie one after the other from `data` on are aligned.
template <class T>
bool has_wide_runs(const T* data, std::int64_t run) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && run * sizeof(T) % 16 == 0;
}

template <class T, Lines kIndexedBy>
struct PatchLines {
  using Element = T;
  using Line = Patches::Row;
  static constexpr Lines kLines = kIndexedBy;

  Patches patches;
  const T* data;
  bool wide;

  __device__ Line line(int index) const { return patches.row(index); }
  __device__ const T* at(const Line& line, int position) const {
    const Patches::Place place = patches.place(line, patches.column(position));
    return place.y < 0 ? nullptr : data + patches.offset(place);
  }
};

/// A matrix as it is stored, by rows.
template <class T, Lines kIndexedBy>
struct MatrixLines {
  using Element = T;
  using Line = const T*;
  static constexpr Lines kLines = kIndexedBy;

  const T* data;
  int lines, length;
  bool wide;

  __device__ Line line(int index) const { return index < lines ? data + std::int64_t{index} * length : nullptr; }
  __device__ const T* at(Line line, int position) const {
    return line && position < length ? line + position : nullptr;
  }
};

/// w with lines (kh, kw, o), along the input channels.
template <class T>
struct TurnedFilters {
  using Element = T;
  using Line = const T*;
  static constexpr Lines kLines = Lines::depth;

  const T* data;
  Divisor filters;
  int places, channels;  // of the kernel
  bool wide;

  __device__ Line line(int index) const {
    const auto [place, filter] = filters.divide(index);
    return place < places ? data + (std::int64_t{filter} * places + place) * channels : nullptr;
  }
  __device__ const T* at(Line line, int position) const {
    return line && position < channels ? line + position : nullptr;
  }
};

template <class A, class B>
struct Product {
  A a;
  B b;
  int rows, columns, depth;
};
template <class A, class B>
Product(A, B, int, int, int) -> Product<A, B>;

inline Patches::Outputs all_outputs(const Geometry& g) { return {g.out_height(), g.out_width()}; }

template <class T>
TurnedFilters<T> turned_filters(const Geometry& g, const T* w) {
  return {w, Divisor(lib::narrow<int>("conv2d", "out_channels", g.out_channels)),
          static_cast<int>(g.kernel_height * g.kernel_width), lib::narrow<int>("conv2d", "in_channels", g.in_channels),
          has_wide_runs(w, g.in_channels)};
}

template <class T>
auto forward_product(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto* x = static_cast<const T*>(args.x);
  const auto* w = static_cast<const T*>(args.w);
  const PatchLines<T, Lines::outer> a{Patches::of_outputs(g, all_outputs(g)), x, has_wide_runs(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int depth = a.patches.columns();
  return Product{a, MatrixLines<T, Lines::outer>{w, filters, depth, has_wide_runs(w, depth)}, a.patches.rows(), filters,
                 depth};
}

template <class T>
auto dgrad_product(const DgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchLines<T, Lines::outer> a{Patches::of_inputs(g, all_outputs(g)), dy, has_wide_runs(dy, g.out_channels)};
  const auto b = turned_filters(g, static_cast<const T*>(args.w));
  return Product{a, b, a.patches.rows(), b.channels, a.patches.columns()};
}

template <class T>
auto wgrad_product(const WgradArgs& args) {
  const Geometry& g = args.geometry;
  const auto* x = static_cast<const T*>(args.x);
  const auto* dy = static_cast<const T*>(args.dy);
  const PatchLines<T, Lines::depth> b{Patches::of_outputs(g, all_outputs(g)), x, has_wide_runs(x, g.in_channels)};
  const int filters = lib::narrow<int>("conv2d", "out_channels", g.out_channels);
  const int depth = b.patches.rows();
  return Product{MatrixLines<T, Lines::depth>{dy, depth, filters, has_wide_runs(dy, g.out_channels)}, b, filters,
                 b.patches.columns(), depth};
}

/// What moves in one go: 16 bytes of 16-bit elements.
inline constexpr int kPiece = 8;

/// A piece of a line to shared memory, by copy16(to, from) where it lies together; 0 for what is not there.
template <class Operand, class T, class Copy>
__device__ void copy_piece(T* to, const Operand& from, const typename Operand::Line& line, int position, Copy copy16) {
  if (from.wide) {
    if (const T* here = from.at(line, position))
      copy16(to, here);
    else
      simt::store_as(to, uint4{});
    return;
  }
  for (int i = 0; i < kPiece; ++i) {
    const T* here = from.at(line, position + i);
    to[i] = here ? *here : lib::from_f32<T>(0.0f);
  }
}

/// The same for operands that know better, by their load(to, line, position, copy16).
template <class Operand, class T, class Copy>
__device__ void load_piece(T* to, const Operand& from, const typename Operand::Line& line, int position, Copy copy16) {
  if constexpr (requires { from.load(to, line, position, copy16); })
    from.load(to, line, position, copy16);
  else
    copy_piece(to, from, line, position, copy16);
}

/// A tile of an operand in shared memory, as its lines lie in global memory.
template <class Operand, int kOuter, int kDepth>
struct OperandTile {
  using T = typename Operand::Element;
  static constexpr bool kByOuter = Operand::kLines == Lines::outer;
  static constexpr int kLineCount = kByOuter ? kOuter : kDepth;
  static constexpr int kPiecesOfLine = (kByOuter ? kDepth : kOuter) / kPiece;
  /// One piece more, which keeps lines apart by other than a multiple of 128 bytes: eight of them meet no bank twice.
  static constexpr int kPitch = (kPiecesOfLine + 1) * kPiece;

  T lines[kLineCount][kPitch];

  template <int kThreads, class Copy>
  __device__ void load(const Operand& from, int first_outer, int first_depth, Copy copy16) {
    const int first_line = kByOuter ? first_outer : first_depth;
    const int first_position = kByOuter ? first_depth : first_outer;
    for (int i = static_cast<int>(threadIdx.x); i < kLineCount * kPiecesOfLine; i += kThreads) {
      const int line = i / kPiecesOfLine;
      const int position = i % kPiecesOfLine * kPiece;
      load_piece(&lines[line][position], from, from.line(first_line + line), first_position + position, copy16);
    }
  }

  /// The first of 16 x 16 elements.
  __device__ const T* element(int outer, int depth) const {
    return kByOuter ? &lines[outer][depth] : &lines[depth][outer];
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
