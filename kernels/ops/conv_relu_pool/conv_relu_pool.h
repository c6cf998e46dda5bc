// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "kernels/lib/partial_sums.h"
#include "kernels/lib/variant.h"
#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/runtime/branch.h"

namespace gradring::kernels::conv_relu_pool {

/// The largest window whose elements, and kCutOff, have different codes in half a byte.
inline constexpr std::int64_t kMostWindow = 3;

/// A convolution, and the square windows that its outputs are pooled by, without gaps and overlap. Rows and columns
/// that fill no window are left out.
struct Geometry {
  conv2d::Geometry conv;
  std::int64_t window = 2;  ///< at most kMostWindow

  constexpr std::int64_t out_height() const { return conv.out_height() / window; }
  constexpr std::int64_t out_width() const { return conv.out_width() / window; }
  constexpr std::int64_t out_positions() const { return conv.batch * out_height() * out_width(); }
  constexpr std::int64_t out_elements() const { return out_positions() * conv.out_channels; }
  /// Of the codes of one position: two channels share a byte.
  constexpr std::int64_t code_bytes_of_position() const { return (conv.out_channels + 1) / 2; }
  constexpr std::int64_t code_bytes() const { return out_positions() * code_bytes_of_position(); }
};

/// The code of an output that ReLU has cut off: no gradient passes there.
inline constexpr unsigned kCutOff = 15;

/// The codes of two neighbouring channels in one byte, the even channel's in its lower half. Who writes it writes both.
constexpr std::uint8_t packed_codes(unsigned even, unsigned odd) { return static_cast<std::uint8_t>(even | odd << 4); }

/// A channel's code out of those of its position.
constexpr unsigned code_at(const std::uint8_t* codes_of_position, std::int64_t channel) {
  return codes_of_position[channel / 2] >> channel % 2 * 4 & 15u;
}

/// Convolution, bias, ReLU and max pooling in one; kernels for common geometries do not store the convolution's output:
///   z = conv2d(x, w) + b        y[n,oh,ow,o] = max(0, max_{i,j} z[n, oh*window + i, ow*window + j, o])
///   code of (n,oh,ow,o) = i*window + j of the first maximum of z, or kCutOff where that maximum is not above 0
///
/// Shapes    x: NHWC; w: OHWI; b: [out_channels]; y: [batch, out_height, out_width, out_channels]; codes: as y, two
///           channels a byte (packed_codes), each position on bytes of its own: of an odd number of channels the last
///           one shares its byte with a kCutOff; contiguous.
/// Types     f32, f16 or bf16, equal for x, w, b and y; sums in f32; codes: half bytes.
/// Aliasing  nothing overlaps.
/// Order     enqueued on the stream; returns at once. No outputs: nothing happens.
/// Errors    InvalidArgument if conv2d rejects the geometry, it has groups, window is not in 1..3, a pointer is null, or the type
///           none of the three.
/// Numerics  deterministic; z has the error of conv2d and one rounding more. Where maxima are closer than that, another
///           variant may take another one. A NaN in a window is its maximum, as in PyTorch.
/// Cost      2 * out_elements * window^2 * filter_elements floating-point operations; reads x, writes y and the codes.
/// Example   tests/kernels/ops/conv_relu_pool_test.cpp
struct ForwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* w = nullptr;
  const void* b = nullptr;
  void* y = nullptr;
  std::uint8_t* codes = nullptr;
  void* workspace = nullptr;       ///< Variant::workspace_bytes bytes, aligned to 64
  std::optional<DType> x_dtype{};  ///< f32 while the rest is f16 or bf16: x is rounded as it is read (Variant::reads)
};

/// All its gradients. Each dy flows to the one convolution output that its code names, or nowhere:
///   dz = dy scattered by the codes        dx, dw = the gradients of conv2d for dz        db[o] = sum of dz over all
///   but o
///
/// Shapes    as above. dx may be null: it is not computed.
/// Types     x, w, dy, dx: f32, f16 or bf16, all equal; dw, db: f32, added to if `accumulate`; sums in f32.
/// Aliasing  nothing overlaps.
/// Numerics  deterministic for one variant, number of workers and alignment of the arrays; error as for conv2d's
///           gradients. An infinity or NaN in x, w or dy may make further gradients NaN, by products with zeros.
/// Cost      at most 4 * out_elements * filter_elements floating-point operations: a quarter (2x2 windows) of those of
///           an unpooled convolution's gradients, and nothing for outputs that are cut off.
/// The rest  as for ForwardArgs.
struct BackwardArgs {
  Geometry geometry;
  DType dtype = DType::f32;
  const void* x = nullptr;
  const void* w = nullptr;
  const void* dy = nullptr;
  const std::uint8_t* codes = nullptr;
  void* dx = nullptr;
  float* dw = nullptr;
  float* db = nullptr;
  bool accumulate = false;
  void* workspace = nullptr;            ///< as in ForwardArgs; in use until `branch` is joined
  PartialSums* partial_sums = nullptr;  ///< of dw and db
  void* partial_sum_memory = nullptr;   ///< for them: Variant::partial_sum_bytes bytes, aligned to 64; null: workspace
  std::optional<DType> x_dtype{};       ///< as in ForwardArgs
  /// For dw and db beside dx, in the variants that can. The caller joins it. Null: all on `stream`.
  Branch* branch = nullptr;

  /// Where slices of dw and db go.
  void* slices() const { return partial_sum_memory ? partial_sum_memory : workspace; }
};

void check_args(const ForwardArgs& args);
void check_args(const BackwardArgs& args);
/// For a variant that reads x in `dtype` only.
void check_x_dtype(DType dtype, std::optional<DType> x_dtype);

void reference_forward(const ForwardArgs& args);
void reference_backward(const BackwardArgs& args);

struct Variant {
  std::string_view name;
  void (*forward)(Stream&, const ForwardArgs&);
  void (*backward)(Stream&, const BackwardArgs&);
  std::size_t (*workspace_bytes)(const Geometry&);  ///< enough for either pass
  bool (*supports)(const Device&, DType);           ///< where it is chosen
  bool (*computes)(DType) = nullptr;                ///< what it is right for on any device, if that is more
  /// Whether forward, and backward without dx, read x of type `x_dtype` while all else is `dtype`; null: no.
  bool (*reads)(const Geometry&, DType dtype, DType x_dtype) = nullptr;
  /// Of the workspace, what backward leaves partial sums in; null: it leaves none.
  std::size_t (*partial_sum_bytes)(const Geometry&) = nullptr;
};

}  // namespace gradring::kernels::conv_relu_pool
