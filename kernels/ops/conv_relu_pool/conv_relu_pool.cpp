// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"
#include "kernels/ops/max_pool2d/max_pool2d.h"

namespace gradring::kernels::conv_relu_pool {
namespace {

constexpr std::string_view kForward = "conv_relu_pool forward";
constexpr std::string_view kBackward = "conv_relu_pool backward";

void check_geometry(std::string_view op, const Geometry& g, DType dtype) {
  conv2d::check_geometry(op, g.conv, dtype);
  lib::check_limit(op, "groups", g.conv.groups, 1);
  lib::check_at_least(op, 1, {{"window", g.window}});
  check(g.window <= kMostWindow, [&] {
    return std::string(op) + ": window is " + std::to_string(g.window) + ", expected at most " +
           std::to_string(kMostWindow);
  });
}

max_pool2d::Geometry pool_of(const Geometry& g) {
  return {.batch = g.conv.batch,
          .height = g.conv.out_height(),
          .width = g.conv.out_width(),
          .channels = g.conv.out_channels,
          .window = g.window,
          .stride = g.window};
}

/// The convolution's output and its gradient, in f64 as far as conv2d's reference can be told: it writes f32.
std::vector<float> unpooled(const Geometry& g) {
  return std::vector<float>(static_cast<std::size_t>(g.conv.out_elements()));
}

/// A byte an output -> two channels a byte.
void pack(const Geometry& g, const std::vector<std::uint8_t>& codes, std::uint8_t* packed) {
  const auto channels = static_cast<std::size_t>(g.conv.out_channels);
  for (std::size_t first = 0; first < codes.size(); first += channels)
    for (std::size_t o = 0; o < channels; o += 2)
      *packed++ = packed_codes(codes[first + o], o + 1 < channels ? codes[first + o + 1] : kCutOff);
}

/// And back.
std::vector<std::uint8_t> unpacked(const Geometry& g, const std::uint8_t* packed) {
  std::vector<std::uint8_t> codes;
  for (std::int64_t position = 0; position < g.out_positions(); ++position)
    for (std::int64_t o = 0; o < g.conv.out_channels; ++o)
      codes.push_back(static_cast<std::uint8_t>(code_at(packed + position * g.code_bytes_of_position(), o)));
  return codes;
}

void check_x_type(std::string_view op, DType dtype, std::optional<DType> x_dtype) {
  const DType type = x_dtype.value_or(dtype);
  check(type == dtype || type == DType::f32, [&] {
    return std::string(op) + ": x has type " + std::string(name_of(type)) + ", expected " +
           std::string(name_of(dtype)) + " or f32";
  });
}

/// An array of any type as f32, in which every value of the three types is exact.
std::vector<float> as_f32(DType dtype, const void* from, std::int64_t elements) {
  const std::vector<double> values = lib::read_values(dtype, from, static_cast<std::size_t>(elements));
  return {values.begin(), values.end()};
}

/// x as it is computed with.
std::vector<float> inputs_of(DType dtype, std::optional<DType> x_dtype, const void* x, std::int64_t elements) {
  if (x_dtype.value_or(dtype) == dtype) return as_f32(dtype, x, elements);
  std::vector<std::byte> rounded(lib::bytes_of(elements, dtype));
  lib::write_values(dtype, rounded.data(), lib::read_values(*x_dtype, x, static_cast<std::size_t>(elements)));
  return as_f32(dtype, rounded.data(), elements);
}

}  // namespace

void check_x_dtype(DType dtype, std::optional<DType> x_dtype) {
  check(x_dtype.value_or(dtype) == dtype, [&] {
    return "conv_relu_pool: this variant does not read x of type " + std::string(name_of(*x_dtype)) +
           ", expected that of w, " + std::string(name_of(dtype));
  });
}

void check_args(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry(kForward, g, args.dtype);
  check_x_type(kForward, args.dtype, args.x_dtype);
  if (g.out_elements() == 0) return;
  lib::check_array(kForward, "x", args.x, g.conv.in_elements());
  lib::check_array(kForward, "w", args.w, g.conv.weight_elements());
  lib::check_pointers(kForward, {{"b", args.b}, {"y", args.y}, {"codes", args.codes}});
  lib::check_apart(kForward, args.x, lib::bytes_of(g.conv.in_elements(), args.x_dtype.value_or(args.dtype)), args.y,
                   lib::bytes_of(g.out_elements(), args.dtype));
}

void check_args(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry(kBackward, g, args.dtype);
  check_x_type(kBackward, args.dtype, args.x_dtype);
  lib::check_array(kBackward, "dw", args.dw, g.conv.weight_elements());
  lib::check_array(kBackward, "db", args.db, g.conv.out_channels);
  lib::check_array(kBackward, "x", args.x, g.conv.in_elements());
  lib::check_array(kBackward, "dy", args.dy, g.out_elements());
  lib::check_array(kBackward, "codes", args.codes, g.out_elements());
  if (!args.dx) return;
  lib::check_array(kBackward, "w", args.w, g.conv.weight_elements());
  lib::check_apart(kBackward, args.dy, lib::bytes_of(g.out_elements(), args.dtype), args.dx,
                   lib::bytes_of(g.conv.in_elements(), args.dtype));
}

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  const std::vector<float> x = inputs_of(args.dtype, args.x_dtype, args.x, g.conv.in_elements());
  const std::vector<float> w = as_f32(args.dtype, args.w, g.conv.weight_elements());
  const std::vector<float> b = as_f32(args.dtype, args.b, g.conv.out_channels);
  std::vector<float> z = unpooled(g);
  conv2d::reference_forward({.geometry = g.conv, .dtype = DType::f32, .x = x.data(), .w = w.data(), .y = z.data()});
  for (std::size_t i = 0; i < z.size(); ++i) z[i] += b[i % b.size()];

  std::vector<float> y(static_cast<std::size_t>(g.out_elements()));
  std::vector<std::uint8_t> codes(y.size());
  max_pool2d::reference_forward(
      {.geometry = pool_of(g), .dtype = DType::f32, .x = z.data(), .y = y.data(), .codes = codes.data()});
  std::vector<double> values(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    const bool cut_off = y[i] <= 0;
    if (cut_off) codes[i] = kCutOff;
    values[i] = cut_off ? 0 : y[i];
  }
  lib::write_values(args.dtype, args.y, values);
  pack(g, codes, args.codes);
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  std::vector<float> dy = as_f32(args.dtype, args.dy, g.out_elements());
  std::vector<std::uint8_t> codes = unpacked(g, args.codes);
  for (std::size_t i = 0; i < dy.size(); ++i)
    if (codes[i] == kCutOff) dy[i] = 0, codes[i] = 0;
  std::vector<float> dz = unpooled(g);
  max_pool2d::reference_backward(
      {.geometry = pool_of(g), .dtype = DType::f32, .dy = dy.data(), .codes = codes.data(), .dx = dz.data()});

  const std::vector<float> x = inputs_of(args.dtype, args.x_dtype, args.x, g.conv.in_elements());
  conv2d::reference_wgrad({.geometry = g.conv,
                           .dtype = DType::f32,
                           .x = x.data(),
                           .dy = dz.data(),
                           .dw = args.dw,
                           .accumulate = args.accumulate});
  const auto channels = static_cast<std::size_t>(g.conv.out_channels);
  for (std::size_t o = 0; o < channels; ++o) {
    double sum = args.accumulate ? args.db[o] : 0;
    for (std::size_t i = o; i < dy.size(); i += channels) sum += dy[i];
    args.db[o] = static_cast<float>(sum);
  }
  if (!args.dx) return;
  const std::vector<float> w = as_f32(args.dtype, args.w, g.conv.weight_elements());
  std::vector<float> dx(static_cast<std::size_t>(g.conv.in_elements()));
  conv2d::reference_dgrad({.geometry = g.conv, .dtype = DType::f32, .dy = dz.data(), .w = w.data(), .dx = dx.data()});
  lib::write_values(args.dtype, args.dx, std::vector<double>(dx.begin(), dx.end()));
}

}  // namespace gradring::kernels::conv_relu_pool
