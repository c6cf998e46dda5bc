// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/lib/half_pairs.h"
#include "kernels/ops/conv2d/products.cuh"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {
/// The passes of the variant "mma".
namespace mma {

void forward(Stream& stream, const ForwardArgs& args);    // 3_mma_forward.cu
void backward(Stream& stream, const BackwardArgs& args);  // 3_mma_backward.cu
std::size_t workspace_bytes(const Geometry& g);
bool reads(const Geometry& g, DType dtype, DType x_dtype);

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

/// Eight times the code `element`, as the codes of eight channels are in 32 bits.
__device__ inline std::uint32_t eight_codes(int element) { return static_cast<std::uint32_t>(element) * 0x11111111u; }

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

  /// Eight channels of one element before the codes are applied: those whose codes differ from it are 0.
  struct Vector {
    uint4 dy;
    std::uint32_t differences;
  };

  __device__ T at(const Windows::WindowElement& element, int channel) const {
    const std::int64_t out = std::int64_t{element.window} * channels + channel;
    return code_at(codes_of(element), channel) == static_cast<unsigned>(element.index) ? dy[out]
                                                                                       : lib::from_f32<T>(0.0f);
  }
  __device__ const std::uint8_t* codes_of(const Windows::WindowElement& element) const {
    return codes + std::int64_t{element.window} * code_bytes;
  }
  __device__ Vector fetch(const Windows::WindowElement& element, int channel) const {
    return {simt::load_as<uint4>(dy + std::int64_t{element.window} * channels + channel),
            simt::load_as<std::uint32_t>(codes_of(element) + channel / 2) ^ eight_codes(element.index)};
  }
  /// Channels whose codes differ, as 0.
  __device__ static void store(T* to, const Vector& vector) {
    std::uint32_t differs = vector.differences | vector.differences >> 2;
    differs |= differs >> 1;                            // the lowest bit of a channel's four: any of them
    const std::uint32_t kept = ~differs & 0x11111111u;  // of channel 2 i bit 8 i, of channel 2 i + 1 bit 8 i + 4
    const std::uint32_t even = kept << 7;               // the highest bits of bytes, of which permute_bytes makes masks
    const std::uint32_t odd = kept << 3;
    const uint4& dy = vector.dy;
    simt::store_as(to,
                   uint4{dy.x & lib::permute_bytes<0xcc88>(even, odd), dy.y & lib::permute_bytes<0xdd99>(even, odd),
                         dy.z & lib::permute_bytes<0xeeaa>(even, odd), dy.w & lib::permute_bytes<0xffbb>(even, odd)});
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
  using Column = int;
  using Vector = typename PooledGradient<T>::Vector;
  static constexpr bool kKMajor = false;

  PooledGradient<T> dz;
  bool aligned;

  __device__ Row row(int index) const { return dz.windows.element(index); }
  __device__ Column column(int channel) const { return channel; }
  __device__ bool has(const Row& row, int channel) const {
    return row.window < dz.windows.count() && channel < dz.channels;
  }
  __device__ T element(const Row& row, int channel) const {
    return has(row, channel) ? dz.at(row, channel) : lib::from_f32<T>(0.0f);
  }
  __device__ Vector fetch(const Row& row, int channel) const {
    return has(row, channel) ? dz.fetch(row, channel) : Vector{};
  }
  __device__ static void store(T* to, const Vector& vector) { PooledGradient<T>::store(to, vector); }
};

/// Patches of dz: operand A of dx.
template <class T>
struct GradientPatches {
  using Element = T;
  using Row = conv2d::Patches::Row;
  using Column = conv2d::Patches::Column;
  using Vector = typename PooledGradient<T>::Vector;
  static constexpr bool kKMajor = true;

  conv2d::Patches patches;
  PooledGradient<T> dz;
  bool aligned;

  __device__ Row row(int index) const { return patches.row(index); }
  __device__ Column column(int index) const { return patches.column(index); }
  __device__ T element(const Row& row, const Column& column) const {
    const conv2d::Patches::Position at = patches.position(row, column);
    return at.y < 0 ? lib::from_f32<T>(0.0f) : dz.at(dz.windows.element_at({at.image, at.y, at.x}), at.channel);
  }
  __device__ Vector fetch(const Row& row, const Column& column) const {
    const conv2d::Patches::Position at = patches.position(row, column);
    return at.y < 0 ? Vector{} : dz.fetch(dz.windows.element_at({at.image, at.y, at.x}), at.channel);
  }
  __device__ static void store(T* to, const Vector& vector) { PooledGradient<T>::store(to, vector); }
};

/// Patches of x with a row for each output that pooling uses, and a column of ones after the last: dz^T times it is dw
/// and db.
template <class T>
struct PatchesAndOnes : conv2d::PatchMatrix<T, conv2d::Major::mn> {
  using Patches = conv2d::PatchMatrix<T, conv2d::Major::mn>;
  struct Column : Patches::Column {
    bool ones;
  };

  Windows windows;

  __device__ typename Patches::Row row(int index) const {
    const Windows::WindowElement element = windows.element(index);
    if (element.window >= windows.count()) return this->row_of(conv2d::Patches::no_row());
    const Windows::Position at = windows.position(element);
    return this->row_of(this->patches.row_at(at.image, at.y, at.x));
  }
  __device__ Column column(int index) const { return {Patches::column(index), index == this->patches.columns()}; }
  __device__ static T absent(const Column& column) { return lib::from_f32<T>(column.ones ? 1.0f : 0.0f); }
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
