// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"

namespace gradring::kernels::conv2d {

/// Sizes of a two-dimensional convolution with zero padding. The channels may be split into groups that see nothing of
/// each other. groups == in_channels == out_channels: depthwise.
struct Geometry {
  std::int64_t batch = 0;
  std::int64_t in_height = 0;
  std::int64_t in_width = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel_height = 0;
  std::int64_t kernel_width = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;  ///< rows and columns of zeros on each side
  std::int64_t groups = 1;   ///< divides in_channels and out_channels

  constexpr std::int64_t out_height() const { return out_extent(in_height, kernel_height); }
  constexpr std::int64_t out_width() const { return out_extent(in_width, kernel_width); }
  constexpr std::int64_t group_inputs() const { return in_channels / groups; }
  constexpr std::int64_t group_filters() const { return out_channels / groups; }
  constexpr std::int64_t in_elements() const { return batch * in_height * in_width * in_channels; }
  constexpr std::int64_t out_elements() const { return batch * out_height() * out_width() * out_channels; }
  /// Positions of the kernel.
  constexpr std::int64_t taps() const { return kernel_height * kernel_width; }
  /// Length of one filter: the weights of one output channel.
  constexpr std::int64_t filter_elements() const { return taps() * group_inputs(); }
  /// The same of a single group, without a division, for kernels.
  constexpr std::int64_t whole_filter_elements() const { return taps() * in_channels; }
  constexpr std::int64_t weight_elements() const { return out_channels * filter_elements(); }
  constexpr bool is_depthwise() const { return groups == in_channels && groups == out_channels; }

 private:
  constexpr std::int64_t out_extent(std::int64_t in, std::int64_t kernel) const {
    const std::int64_t slack = in + 2 * padding - kernel;
    return slack < 0 ? 0 : slack / stride + 1;
  }
};

/// Convolution (cross-correlation, as in PyTorch) in groups, and the bias and the ReLU after it. With I = in_channels /
/// groups inputs and O = out_channels / groups filters in a group, and g = o / O the group of filter o:
///   y[n,oh,ow,o] = f(sum_{kh,kw,i} x[n, oh*stride + kh - padding, ow*stride + kw - padding, g*I + i] * w[o,kh,kw,i]
///                    (+ bias[o])),   f(x) = max(x, 0) with `relu`, else x
///
/// Shapes    x: [batch, in_height, in_width, in_channels] (NHWC);
///           w: [out_channels, kernel_height, kernel_width, in_channels / groups] (OHWI);
///           y: [batch, out_height, out_width, out_channels] (NHWC); all contiguous; bias: [out_channels], or null.
/// Types     f32, f16 or bf16, equal for x, w, bias and y; sums in f32.
/// Aliasing  nothing overlaps.
/// Order     enqueued on the stream; returns at once. No elements: nothing happens.
/// Errors    InvalidArgument if an extent is negative, a kernel extent, the stride or groups is below 1, groups does not
///           divide the channels, the padding is negative, a pointer null, the type none of the three, or the variant
///           has no kernels for several groups (KernelSet::conv2d).
/// Numerics  deterministic; error below (filter_elements + 1) * 2^-24 * (sum |x * w| + |bias|), and one rounding to the
///           type of y. With `relu`, NaN stays NaN, as in PyTorch.
/// Cost      2 * out_elements * filter_elements floating-point operations.
/// Source    torch.nn.Conv2d; of groups: Howard et al., "MobileNets", 2017 (arXiv 1704.04861).
/// Example   tests/kernels/ops/conv2d_test.cpp
struct ForwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* w = nullptr;
  void* y = nullptr;
  const void* bias = nullptr;
  bool relu = false;
};

/// Gradient of the data: dx[n,ih,iw,g*I+i] = sum of dy[n,oh,ow,o] * w[o,kh,kw,i] over the filters o of group g and all
/// (kh,oh), (kw,ow) with ih = oh*stride + kh - padding and iw = ow*stride + kw - padding. dx is overwritten.
///
/// Numerics  deterministic; error below taps * O * 2^-24 * sum |dy * w|, and one rounding.
/// The rest  as for ForwardArgs.
struct DgradArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* dy = nullptr;
  const void* w = nullptr;
  void* dx = nullptr;
};

/// Gradient of the weights, added to dw if `accumulate`:
///   dw[o,kh,kw,i] = sum_{n,oh,ow} dy[n,oh,ow,o] * x[n, oh*stride + kh - padding, ow*stride + kw - padding, g*I + i]
///
/// Types     x, dy: f32, f16 or bf16; dw: f32; sums in f32. With an empty batch, dw becomes 0 or stays as it is.
/// Numerics  deterministic; error below batch * out_height * out_width * 2^-24 * sum |dy * x|.
/// The rest  as for ForwardArgs.
struct WgradArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* dy = nullptr;
  float* dw = nullptr;
  bool accumulate = false;
  void* workspace = nullptr;  ///< Variant::workspace_bytes bytes, aligned to 64; the reference needs none
  PartialSums* partial_sums = nullptr;
};

/// Rejects impossible extents and other types, for all operations that convolve; `op` is named in the message.
void check_geometry(std::string_view op, const Geometry& geometry, DType dtype);

void check_args(const ForwardArgs& args);
void check_args(const DgradArgs& args);
void check_args(const WgradArgs& args);
void reference_forward(const ForwardArgs& args);
void reference_dgrad(const DgradArgs& args);
void reference_wgrad(const WgradArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*dgrad)(Stream&, const DgradArgs&);
  void (*wgrad)(Stream&, const WgradArgs&);
  std::size_t (*workspace_bytes)(const Geometry&);  ///< of wgrad; enough for a smaller batch, too
  bool (*supports)(const Device&, DType);           ///< where it is chosen
  bool (*computes)(DType) = nullptr;                ///< what it is right for on any device, if that is more
};

}  // namespace gradring::kernels::conv2d
