// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/conv2d/conv2d.h"

#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::conv2d {
namespace {

/// The three passes are one sum over the same triples: calls visit(y index, x index, w index) for each product of the
/// forward sum that does not fall into the padding.
template <class Visit>
void for_each_product(const Geometry& g, Visit visit) {
  std::size_t y = 0;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.out_height(); ++oh)
      for (std::int64_t ow = 0; ow < g.out_width(); ++ow)
        for (std::int64_t o = 0; o < g.out_channels; ++o, ++y)
          for (std::int64_t kh = 0; kh < g.kernel_height; ++kh)
            for (std::int64_t kw = 0; kw < g.kernel_width; ++kw) {
              const std::int64_t ih = oh * g.stride + kh - g.padding;
              const std::int64_t iw = ow * g.stride + kw - g.padding;
              if (ih < 0 || ih >= g.in_height || iw < 0 || iw >= g.in_width) continue;
              const std::int64_t first_input = o / g.group_filters() * g.group_inputs();
              const auto x =
                  static_cast<std::size_t>(((n * g.in_height + ih) * g.in_width + iw) * g.in_channels + first_input);
              const auto w = static_cast<std::size_t>((o * g.taps() + kh * g.kernel_width + kw) * g.group_inputs());
              for (std::size_t i = 0; i < static_cast<std::size_t>(g.group_inputs()); ++i) visit(y, x + i, w + i);
            }
}

std::vector<double> zeros(std::int64_t elements) {
  return std::vector<double>(static_cast<std::size_t>(elements), 0.0);
}

std::vector<double> read(DType dtype, const void* from, std::int64_t elements) {
  return lib::read_values(dtype, from, static_cast<std::size_t>(elements));
}

}  // namespace

void check_geometry(std::string_view op, const Geometry& g, DType dtype) {
  lib::check_at_least(op, 0,
                      {{"batch", g.batch},
                       {"in_height", g.in_height},
                       {"in_width", g.in_width},
                       {"in_channels", g.in_channels},
                       {"out_channels", g.out_channels}});
  lib::check_at_least(op, 1,
                      {{"kernel_height", g.kernel_height},
                       {"kernel_width", g.kernel_width},
                       {"stride", g.stride},
                       {"groups", g.groups}});
  lib::check_at_least(op, 0, {{"padding", g.padding}});
  check(g.in_channels % g.groups == 0 && g.out_channels % g.groups == 0, [&] {
    return std::string(op) + ": groups is " + std::to_string(g.groups) + ", expected a divisor of in_channels (" +
           std::to_string(g.in_channels) + ") and out_channels (" + std::to_string(g.out_channels) + ")";
  });
  lib::check_floating(op, "dtype", dtype);
}

void check_args(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("conv2d forward", g, args.dtype);
  if (g.out_elements() == 0) return;
  lib::check_array("conv2d forward", "x", args.x, g.in_elements());
  lib::check_array("conv2d forward", "w", args.w, g.weight_elements());
  lib::check_pointer("conv2d forward", "y", args.y);
  const std::size_t y_bytes = lib::bytes_of(g.out_elements(), args.dtype);
  lib::check_apart("conv2d forward", args.x, lib::bytes_of(g.in_elements(), args.dtype), args.y, y_bytes);
  lib::check_apart("conv2d forward", args.w, lib::bytes_of(g.weight_elements(), args.dtype), args.y, y_bytes);
  if (args.bias)
    lib::check_apart("conv2d forward", args.bias, lib::bytes_of(g.out_channels, args.dtype), args.y, y_bytes);
}

void check_args(const DgradArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("conv2d dgrad", g, args.dtype);
  if (g.in_elements() == 0) return;
  lib::check_array("conv2d dgrad", "dy", args.dy, g.out_elements());
  lib::check_array("conv2d dgrad", "w", args.w, g.weight_elements());
  lib::check_pointer("conv2d dgrad", "dx", args.dx);
  const std::size_t dx_bytes = lib::bytes_of(g.in_elements(), args.dtype);
  lib::check_apart("conv2d dgrad", args.dy, lib::bytes_of(g.out_elements(), args.dtype), args.dx, dx_bytes);
  lib::check_apart("conv2d dgrad", args.w, lib::bytes_of(g.weight_elements(), args.dtype), args.dx, dx_bytes);
}

void check_args(const WgradArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("conv2d wgrad", g, args.dtype);
  if (g.weight_elements() == 0) return;
  lib::check_array("conv2d wgrad", "x", args.x, g.in_elements());
  lib::check_array("conv2d wgrad", "dy", args.dy, g.out_elements());
  lib::check_pointer("conv2d wgrad", "dw", args.dw);
}

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const std::vector<double> x = read(args.dtype, args.x, g.in_elements());
  const std::vector<double> w = read(args.dtype, args.w, g.weight_elements());
  std::vector<double> y = zeros(g.out_elements());
  for_each_product(g, [&](std::size_t iy, std::size_t ix, std::size_t iw) { y[iy] += x[ix] * w[iw]; });
  if (args.bias) {
    const std::vector<double> bias = read(args.dtype, args.bias, g.out_channels);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += bias[i % bias.size()];
  }
  if (args.relu)
    for (double& value : y) value = value < 0 ? 0 : value;  // NaN stays NaN
  lib::write_values(args.dtype, args.y, y);
}

void reference_dgrad(const DgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const std::vector<double> dy = read(args.dtype, args.dy, g.out_elements());
  const std::vector<double> w = read(args.dtype, args.w, g.weight_elements());
  std::vector<double> dx = zeros(g.in_elements());
  for_each_product(g, [&](std::size_t iy, std::size_t ix, std::size_t iw) { dx[ix] += dy[iy] * w[iw]; });
  lib::write_values(args.dtype, args.dx, dx);
}

void reference_wgrad(const WgradArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const std::vector<double> x = read(args.dtype, args.x, g.in_elements());
  const std::vector<double> dy = read(args.dtype, args.dy, g.out_elements());
  std::vector<double> dw =
      args.accumulate ? read(DType::f32, args.dw, g.weight_elements()) : zeros(g.weight_elements());
  for_each_product(g, [&](std::size_t iy, std::size_t ix, std::size_t iw) { dw[iw] += dy[iy] * x[ix]; });
  lib::write_values(DType::f32, args.dw, dw);
}

}  // namespace gradring::kernels::conv2d
