// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/lib/variant.h"

namespace gradring::kernels::max_pool2d {

/// Sizes of a max pooling over square windows; at the far edges, what fills no window is left out.
struct Geometry {
  std::int64_t batch = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 0;
  std::int64_t window = 2;  ///< at most 16, so that an index in the window fits a byte
  std::int64_t stride = 2;
  std::int64_t padding = 0;  ///< rows and columns of -infinity on each side; at most window / 2

  constexpr std::int64_t out_height() const { return out_extent(height); }
  constexpr std::int64_t out_width() const { return out_extent(width); }
  constexpr std::int64_t in_elements() const { return batch * height * width * channels; }
  constexpr std::int64_t out_elements() const { return batch * out_height() * out_width() * channels; }

 private:
  constexpr std::int64_t out_extent(std::int64_t in) const {
    const std::int64_t slack = in + 2 * padding - window;
    return in == 0 || slack < 0 ? 0 : slack / stride + 1;
  }
};

/// The largest value of each window, and where it was:
///   y[n,oh,ow,c]     = max_{i,j} x[n, oh*stride + i - padding, ow*stride + j - padding, c]
///   codes[n,oh,ow,c] = i*window + j of the first maximum
/// Positions in the padding never win: every window holds at least one input.
///
/// Shapes    x: [batch, height, width, channels]; y, codes: [batch, out_height, out_width, channels]; NHWC, contiguous.
/// Types     f32, f16 or bf16, equal for x and y; codes: bytes.
/// Aliasing  nothing overlaps. codes may be null when there will be no backward pass.
/// Order     enqueued on the stream; returns at once. No elements: nothing happens.
/// Errors    InvalidArgument if an extent is negative, window is not in 1..16, stride < 1, padding not in
///           0..window/2, a pointer is null, or the type none of the three.
/// Numerics  exact. The first maximum in reading order wins; a NaN wins over every number, and its code is that of the
///           last NaN of the window: both as in PyTorch.
/// Cost      reads in_elements, writes out_elements (and as many bytes of codes).
/// Source    torch.nn.MaxPool2d, without dilation and ceil_mode.
/// Example   tests/kernels/ops/max_pool2d_test.cpp
struct ForwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  void* y = nullptr;
  std::uint8_t* codes = nullptr;
};

/// Its gradient: every dy goes to the input that its code names; dx is overwritten, inputs that no window chose get 0.
///
/// Shapes    as above; windows may overlap (stride < window) or leave gaps.
/// Types     f32, f16 or bf16, equal for dy and dx; sums over overlapping windows in f32.
/// Aliasing  nothing overlaps.
/// Numerics  deterministic; exact where windows do not overlap.
/// Cost      reads out_elements and as many bytes, writes in_elements.
struct BackwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* dy = nullptr;
  const std::uint8_t* codes = nullptr;
  void* dx = nullptr;
};

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  bool (*supports)(const Device&, DType);
};

}  // namespace gradring::kernels::max_pool2d
