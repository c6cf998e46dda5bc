// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/max_pool2d/max_pool2d.h"

#include <cmath>
#include <vector>

#include "kernels/lib/pooling_checks.h"

namespace gradring::kernels::max_pool2d {
namespace {

void check_geometry(std::string_view op, const Geometry& g) {
  lib::check_pooling(op, g, g.window, g.window);
  lib::check_limit(op, "window", g.window, 16);
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
  check_geometry("max_pool2d forward", args.geometry);
  lib::check_pooled("max_pool2d forward", args);
}

void check_args(const BackwardArgs& args) {
  check_geometry("max_pool2d backward", args.geometry);
  lib::check_pooled_gradient("max_pool2d backward", args);
  if (args.geometry.out_elements() > 0) lib::check_pointer("max_pool2d backward", "codes", args.codes);
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
