// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/conv2d/patches.cuh"
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
  lib::Divisor filters;
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
  return {w, lib::Divisor(lib::narrow<int>("conv2d", "out_channels", g.out_channels)),
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

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
