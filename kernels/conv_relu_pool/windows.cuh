// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/conv2d/products.cuh"
#include "kernels/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

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
  lib::Divisor height_, width_, size_, places_;
  int count_;
};

/// The rows and columns of the convolution's output that fill windows.
inline conv2d::Patches::Outputs pooled_outputs(const Geometry& g) {
  return {g.out_height() * g.window, g.out_width() * g.window};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
