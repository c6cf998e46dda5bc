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
        elements_(static_cast<int>(g.window * g.window)),
        count_(lib::narrow<int>("conv_relu_pool", "positions", g.conv.batch * g.out_height() * g.out_width())) {
    lib::narrow<int>("conv_relu_pool", "positions before pooling", std::int64_t{count_} * elements_.value());
  }

  /// Of an element in the convolution's output.
  struct Position {
    int image, y, x;
  };
  /// The same as a window and a row-major index within it.
  struct WindowElement {
    int window, index;
  };

  __device__ int count() const { return count_; }
  __device__ int elements_of_window() const { return elements_.value(); }
  /// Window by window, all elements of the first one first.
  __device__ WindowElement element(int index) const {
    const auto [window, element_index] = elements_.divide(index);
    return {window, element_index};
  }
  __device__ WindowElement element_at(const Position& position) const {
    const auto [down, row] = size_.divide(position.y);
    const auto [across, column] = size_.divide(position.x);
    return {(position.image * height_.value() + down) * width_.value() + across, row * size_.value() + column};
  }
  __device__ Position position(const WindowElement& element) const {
    const auto [line, across] = width_.divide(element.window);
    const auto [image, down] = height_.divide(line);
    const auto [row, column] = size_.divide(element.index);
    return {image, down * size_.value() + row, across * size_.value() + column};
  }

 private:
  conv2d::Divisor height_, width_, size_, elements_;
  int count_;
};

/// The rows and columns of the convolution's output that fill windows.
inline conv2d::Patches::Outputs pooled_outputs(const Geometry& g) {
  return {g.out_height() * g.window, g.out_width() * g.window};
}

/// A mask of two channels: all 16 bits of each whose code is `element`. The low half is of the lower code of byte
/// `pair`.
__device__ inline std::uint32_t mask_of_pair(std::uint32_t codes, int pair, int element) {
  const auto wanted = static_cast<std::uint32_t>(element);
  const std::uint32_t low = (codes >> (8 * pair) & 0xfu) == wanted ? 0xffffu : 0u;
  const std::uint32_t high = (codes >> (8 * pair + 4) & 0xfu) == wanted ? 0xffff0000u : 0u;
  return low | high;
}

/// dz, the gradient of the convolution's output: dy where the code names the element, 0 elsewhere. It exists in shared
/// memory only, one k-tile at a time.
template <class T>
struct PooledGradient {
  const T* dy;
  const std::uint8_t* codes;
  int channels;
  int code_bytes;  ///< of a position
  Windows windows;
  bool aligned;  ///< eight channels of dy, and of the codes, are one aligned access

  __device__ T at(const Windows::WindowElement& element, int channel) const {
    const std::int64_t out = std::int64_t{element.window} * channels + channel;
    return code_at(codes_of(element), channel) == static_cast<unsigned>(element.index) ? dy[out]
                                                                                       : lib::from_f32<T>(0.0f);
  }
  __device__ const std::uint8_t* codes_of(const Windows::WindowElement& element) const {
    return codes + std::int64_t{element.window} * code_bytes;
  }
  /// A 16-byte vector: eight channels of one element.
  __device__ void load(T* to, const Windows::WindowElement& element, int channel) const {
    const std::int64_t out = std::int64_t{element.window} * channels + channel;
    uint4 values = simt::load_as<uint4>(dy + out);
    const auto eight_codes = simt::load_as<std::uint32_t>(codes_of(element) + channel / 2);
    values.x &= mask_of_pair(eight_codes, 0, element.index);
    values.y &= mask_of_pair(eight_codes, 1, element.index);
    values.z &= mask_of_pair(eight_codes, 2, element.index);
    values.w &= mask_of_pair(eight_codes, 3, element.index);
    simt::store_as(to, values);
  }
};

template <class T>
PooledGradient<T> pooled_gradient(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  const auto* dy = static_cast<const T*>(args.dy);
  const bool aligned =
      conv2d::has_aligned_rows(dy, g.conv.out_channels) && reinterpret_cast<std::uintptr_t>(args.codes) % 4 == 0;
  return {.dy = dy,
          .codes = args.codes,
          .channels = lib::narrow<int>("conv_relu_pool", "out_channels", g.conv.out_channels),
          .code_bytes = static_cast<int>(g.code_bytes_of_position()),
          .windows = Windows(g),
          .aligned = aligned};
}

/// dz with a row for each output that pooling uses, window by window: operand A of dw, M-major.
template <class T>
struct GradientMatrix {
  using Element = T;
  using Row = Windows::WindowElement;
  static constexpr bool kKMajor = false;

  PooledGradient<T> dz;

  __device__ Row row(int index) const { return dz.windows.element(index); }
  template <class Copy>
  __device__ void load(T* to, const Row& row, int channel, Copy) const {
    const int channels = row.window < dz.windows.count() ? dz.channels : 0;
    if (dz.aligned && channel < channels) return dz.load(to, row, channel);
    for (int i = 0; i < lib::kVectorElements; ++i)
      to[i] = channel + i < channels ? dz.at(row, channel + i) : lib::from_f32<T>(0.0f);
  }
};

/// Patches of dz: operand A of dx.
template <class T>
struct GradientPatches {
  using Element = T;
  using Row = conv2d::Patches::Row;
  static constexpr bool kKMajor = true;

  conv2d::Patches patches;
  PooledGradient<T> dz;

  __device__ Row row(int index) const { return patches.row(index); }
  template <class Copy>
  __device__ void load(T* to, const Row& row, int column, Copy) const {
    if (dz.aligned) {
      const conv2d::Patches::Position at = patches.position(row, patches.column(column));
      if (at.y < 0) return simt::store_as(to, uint4{});
      return dz.load(to, dz.windows.element_at({at.image, at.y, at.x}), at.channel);
    }
    for (int i = 0; i < lib::kVectorElements; ++i) {
      const conv2d::Patches::Position at = patches.position(row, patches.column(column + i));
      to[i] = at.y < 0 ? lib::from_f32<T>(0.0f) : dz.at(dz.windows.element_at({at.image, at.y, at.x}), at.channel);
    }
  }
};

/// Patches of x with a row for each output that pooling uses, and a column of ones after the last: dz^T times it is dw
/// and db.
template <class T>
struct PatchesAndOnes : conv2d::PatchMatrix<T, conv2d::Major::mn> {
  Windows windows;

  __device__ conv2d::Patches::Row row(int index) const {
    const Windows::WindowElement element = windows.element(index);
    if (element.window >= windows.count()) return conv2d::Patches::no_row();
    const Windows::Position at = windows.position(element);
    return this->patches.row_at(at.image, at.y, at.x);
  }
  template <class Copy>
  __device__ void load(T* to, const conv2d::Patches::Row& row, int column, Copy copy16) const {
    conv2d::copy_vector(to, *this, row, column, copy16);
    const int ones = this->patches.columns() - column;  // no pending cp.async covers it: copied columns exist in x
    if (ones >= 0 && ones < lib::kVectorElements) to[ones] = lib::from_f32<T>(1.0f);
  }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
