// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
/// The passes of the variant "mma".
namespace mma {

void forward(Stream& stream, const ForwardArgs& args);    // 3_mma_forward.cu
void backward(Stream& stream, const BackwardArgs& args);  // 3_mma_backward.cu
std::size_t workspace_bytes(const Geometry& g);

}  // namespace mma

/// The outputs of the convolution that pooling uses, counted window by window.
class Windows {
 public:
  explicit Windows(const Geometry& g)
      : height_(static_cast<int>(g.out_height())),
        width_(static_cast<int>(g.out_width())),
        size_(static_cast<int>(g.window)),
        places_(static_cast<int>(g.window * g.window)),
        count_(lib::narrow<int>("conv_relu_pool", "positions", g.conv.batch * g.out_height() * g.out_width())) {
    lib::narrow<int>("conv_relu_pool", "positions before pooling", std::int64_t{count_} * places_.value());
  }

  /// Where an output lies in the convolution's output.
  struct Position {
    int image, y, x;
  };
  /// The same as a place of a window.
  struct Cell {
    int window, place;
  };

  __device__ int count() const { return count_; }
  __device__ int places() const { return places_.value(); }
  /// Window by window, all places of the first one first.
  __device__ Cell cell(int index) const {
    const auto [window, place] = places_.divide(index);
    return {window, place};
  }
  __device__ Cell cell_at(const Position& position) const {
    const auto [down, row] = size_.divide(position.y);
    const auto [across, column] = size_.divide(position.x);
    return {(position.image * height_.value() + down) * width_.value() + across, row * size_.value() + column};
  }
  __device__ Position position(const Cell& cell) const {
    const auto [line, across] = width_.divide(cell.window);
    const auto [image, down] = height_.divide(line);
    const auto [row, column] = size_.divide(cell.place);
    return {image, down * size_.value() + row, across * size_.value() + column};
  }

 private:
  conv2d::Divisor height_, width_, size_, places_;
  int count_;
};

/// The rows and columns of the convolution's output that fill windows.
inline conv2d::Patches::Outputs pooled_outputs(const Geometry& g) {
  return {g.out_height() * g.window, g.out_width() * g.window};
}

/// All bits of a 16-bit half of a word where a code is `place`: the low half by the lower code of byte `pair`.
__device__ inline std::uint32_t halves_that_pass(std::uint32_t codes, int pair, int place) {
  const auto wanted = static_cast<std::uint32_t>(place);
  const std::uint32_t low = (codes >> (8 * pair) & 0xfu) == wanted ? 0xffffu : 0u;
  const std::uint32_t high = (codes >> (8 * pair + 4) & 0xfu) == wanted ? 0xffff0000u : 0u;
  return low | high;
}

/// dz, the gradient of the convolution's output, as operands of products: dy where a code names the place, 0 elsewhere.
/// It exists in shared memory only, a tile at a time.
template <class T>
struct PooledGradient {
  const T* dy;
  const std::uint8_t* codes;
  int channels;
  int code_bytes;  ///< of a position
  Windows windows;
  bool wide;  ///< eight channels of dy, and of the codes, are one aligned access

  __device__ T at(const Windows::Cell& cell, int channel) const {
    const std::int64_t out = std::int64_t{cell.window} * channels + channel;
    return code_at(codes_of(cell), channel) == static_cast<unsigned>(cell.place) ? dy[out] : lib::from_f32<T>(0.0f);
  }
  __device__ const std::uint8_t* codes_of(const Windows::Cell& cell) const {
    return codes + std::int64_t{cell.window} * code_bytes;
  }
  /// Eight channels of one place, by wide accesses.
  __device__ void load(T* to, const Windows::Cell& cell, int channel) const {
    const std::int64_t out = std::int64_t{cell.window} * channels + channel;
    uint4 values = simt::load_as<uint4>(dy + out);
    const auto places = simt::load_as<std::uint32_t>(codes_of(cell) + channel / 2);
    values.x &= halves_that_pass(places, 0, cell.place);
    values.y &= halves_that_pass(places, 1, cell.place);
    values.z &= halves_that_pass(places, 2, cell.place);
    values.w &= halves_that_pass(places, 3, cell.place);
    simt::store_as(to, values);
  }
};

template <class T>
PooledGradient<T> pooled_gradient(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  const bool wide =
      conv2d::has_wide_runs(dy, g.conv.out_channels) && reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0;
  return {.dy = dy,
          .codes = args.codes,
          .channels = lib::narrow<int>("conv_relu_pool", "out_channels", g.conv.out_channels),
          .code_bytes = static_cast<int>(g.code_bytes_of_position()),
          .windows = Windows(g),
          .wide = wide};
}

/// dz with a line per output that pooling uses, window by window: what dw multiplies from the left.
template <class T>
struct GradientLines {
  using Element = T;
  using Line = Windows::Cell;
  static constexpr conv2d::Lines kLines = conv2d::Lines::depth;

  PooledGradient<T> dz;

  __device__ Line line(int index) const { return dz.windows.cell(index); }
  template <class Copy>
  __device__ void load(T* to, const Line& line, int position, Copy) const {
    const int channels = line.window < dz.windows.count() ? dz.channels : 0;
    if (dz.wide && position < channels) return dz.load(to, line, position);
    for (int i = 0; i < conv2d::kPiece; ++i)
      to[i] = position + i < channels ? dz.at(line, position + i) : lib::from_f32<T>(0.0f);
  }
};

/// Patches of dz for each input: what dx is made of.
template <class T>
struct GradientPatches {
  using Element = T;
  using Line = conv2d::Patches::Row;
  static constexpr conv2d::Lines kLines = conv2d::Lines::outer;

  conv2d::Patches patches;
  PooledGradient<T> dz;

  __device__ Line line(int index) const { return patches.row(index); }
  template <class Copy>
  __device__ void load(T* to, const Line& line, int position, Copy) const {
    if (dz.wide) {
      const conv2d::Patches::Place place = patches.place(line, patches.column(position));
      if (place.y < 0) return simt::store_as(to, uint4{});
      return dz.load(to, dz.windows.cell_at({place.image, place.y, place.x}), place.channel);
    }
    for (int i = 0; i < conv2d::kPiece; ++i) {
      const conv2d::Patches::Place place = patches.place(line, patches.column(position + i));
      to[i] = place.y < 0 ? lib::from_f32<T>(0.0f)
                          : dz.at(dz.windows.cell_at({place.image, place.y, place.x}), place.channel);
    }
  }
};

/// Patches of x with a line per output that pooling uses, and a column of ones after the last: dz^T times it is dw
/// and db.
template <class T>
struct PatchesAndOnes : conv2d::PatchLines<T, conv2d::Lines::depth> {
  Windows windows;

  __device__ conv2d::Patches::Row line(int index) const {
    const Windows::Cell cell = windows.cell(index);
    if (cell.window >= windows.count()) return conv2d::Patches::no_row();
    const Windows::Position at = windows.position(cell);
    return this->patches.row_at(at.image, at.y, at.x);
  }
  template <class Copy>
  __device__ void load(T* to, const conv2d::Patches::Row& line, int position, Copy copy16) const {
    conv2d::copy_piece(to, *this, line, position, copy16);
    const int ones = this->patches.columns() - position;  // a copy on its way never covers them: its columns exist
    if (ones >= 0 && ones < conv2d::kPiece) to[ones] = lib::from_f32<T>(1.0f);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
