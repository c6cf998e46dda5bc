// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/max_pool2d/max_pool2d.h"

#include <cmath>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::max_pool2d {
namespace {

void check_geometry(std::string_view op, const Geometry& g) {
  lib::check_at_least(op, 0, {{"batch", g.batch}, {"height", g.height}, {"width", g.width}, {"channels", g.channels}});
  lib::check_at_least(op, 1, {{"window", g.window}, {"stride", g.stride}});
  check(g.window <= 16,
        [&] { return std::string(op) + ": window is " + std::to_string(g.window) + ", expected at most 16"; });
  check(g.padding >= 0 && g.padding <= g.window / 2, [&] {
    return std::string(op) + ": padding is " + std::to_string(g.padding) + ", expected 0 to " +
           std::to_string(g.window / 2) + ", half of the window";
  });
}

/// A channel of a window: the index of its output, and where it begins, which may be in the padding.
struct Window {
  std::size_t out;
  std::int64_t n, row, col, channel;
};

template <class Visit>
void for_each_window(const Geometry& g, Visit visit) {
  std::size_t out = 0;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.out_height(); ++oh)
      for (std::int64_t ow = 0; ow < g.out_width(); ++ow)
        for (std::int64_t c = 0; c < g.channels; ++c)
          visit(Window{out++, n, oh * g.stride - g.padding, ow * g.stride - g.padding, c});
}

/// Whether position (i, j) of the window is an input, not padding.
bool holds(const Geometry& g, const Window& at, std::int64_t i, std::int64_t j) {
  return at.row + i >= 0 && at.row + i < g.height && at.col + j >= 0 && at.col + j < g.width;
}

/// The input at position (i, j) of the window.
std::size_t input(const Geometry& g, const Window& at, std::int64_t i, std::int64_t j) {
  return static_cast<std::size_t>(((at.n * g.height + at.row + i) * g.width + at.col + j) * g.channels + at.channel);
}

}  // namespace

void check_args(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("max_pool2d forward", g);
  lib::check_floating("max_pool2d forward", "dtype", args.dtype);
  if (g.out_elements() == 0) return;
  lib::check_pointers("max_pool2d forward", {{"x", args.x}, {"y", args.y}});
  lib::check_apart("max_pool2d forward", args.x, lib::bytes_of(g.in_elements(), args.dtype), args.y,
                   lib::bytes_of(g.out_elements(), args.dtype));
}

void check_args(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("max_pool2d backward", g);
  lib::check_floating("max_pool2d backward", "dtype", args.dtype);
  if (g.in_elements() == 0) return;
  lib::check_pointer("max_pool2d backward", "dx", args.dx);
  if (g.out_elements() == 0) return;
  lib::check_pointers("max_pool2d backward", {{"dy", args.dy}, {"codes", args.codes}});
  lib::check_apart("max_pool2d backward", args.dy, lib::bytes_of(g.out_elements(), args.dtype), args.dx,
                   lib::bytes_of(g.in_elements(), args.dtype));
}

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  const std::vector<double> x = lib::read_values(args.dtype, args.x, static_cast<std::size_t>(g.in_elements()));
  std::vector<double> y(static_cast<std::size_t>(g.out_elements()));
  for_each_window(g, [&](const Window& at) {
    double best = 0;
    std::int64_t code = -1;
    for (std::int64_t i = 0; i < g.window; ++i)
      for (std::int64_t j = 0; j < g.window; ++j) {
        if (!holds(g, at, i, j)) continue;
        const double value = x[input(g, at, i, j)];
        if (code < 0 || value > best || std::isnan(value)) {
          best = value;
          code = i * g.window + j;
        }
      }
    y[at.out] = best;
    if (args.codes) args.codes[at.out] = static_cast<std::uint8_t>(code);
  });
  lib::write_values(args.dtype, args.y, y);
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const std::vector<double> dy = lib::read_values(args.dtype, args.dy, static_cast<std::size_t>(g.out_elements()));
  std::vector<double> dx(static_cast<std::size_t>(g.in_elements()), 0.0);
  for_each_window(g, [&](const Window& at) {
    const std::int64_t i = args.codes[at.out] / g.window, j = args.codes[at.out] % g.window;
    if (holds(g, at, i, j)) dx[input(g, at, i, j)] += dy[at.out];
  });
  lib::write_values(args.dtype, args.dx, dx);
}

}  // namespace gradring::kernels::max_pool2d
