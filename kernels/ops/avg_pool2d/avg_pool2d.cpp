// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/avg_pool2d/avg_pool2d.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::avg_pool2d {
namespace {

void check_geometry(std::string_view op, const Geometry& g) {
  lib::check_at_least(op, 0, {{"batch", g.batch}, {"height", g.height}, {"width", g.width}, {"channels", g.channels}});
  lib::check_at_least(op, 1,
                      {{"window_height", g.window_height}, {"window_width", g.window_width}, {"stride", g.stride}});
  const std::int64_t half = std::min(g.window_height, g.window_width) / 2;
  check(g.padding >= 0 && g.padding <= half, [&] {
    return std::string(op) + ": padding is " + std::to_string(g.padding) + ", expected 0 to " + std::to_string(half) +
           ", half of the window";
  });
}

/// Calls visit(x index, y index, divisor) for every input of every window.
template <class Visit>
void for_each_input(const Geometry& g, Visit visit) {
  std::size_t y = 0;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t oh = 0; oh < g.out_height(); ++oh)
      for (std::int64_t ow = 0; ow < g.out_width(); ++ow, y += static_cast<std::size_t>(g.channels)) {
        const std::int64_t top = oh * g.stride - g.padding, left = ow * g.stride - g.padding;
        const std::int64_t first_row = std::max<std::int64_t>(top, 0), first_col = std::max<std::int64_t>(left, 0);
        const std::int64_t end_row = std::min(top + g.window_height, g.height);
        const std::int64_t end_col = std::min(left + g.window_width, g.width);
        const auto divisor = static_cast<double>(g.count_include_pad ? g.window_elements()
                                                                     : (end_row - first_row) * (end_col - first_col));
        for (std::int64_t ih = first_row; ih < end_row; ++ih)
          for (std::int64_t iw = first_col; iw < end_col; ++iw) {
            const auto x = static_cast<std::size_t>(((n * g.height + ih) * g.width + iw) * g.channels);
            for (std::size_t c = 0; c < static_cast<std::size_t>(g.channels); ++c) visit(x + c, y + c, divisor);
          }
      }
}

}  // namespace

void check_args(const ForwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("avg_pool2d forward", g);
  lib::check_floating("avg_pool2d forward", "dtype", args.dtype);
  if (g.out_elements() == 0) return;
  lib::check_pointers("avg_pool2d forward", {{"x", args.x}, {"y", args.y}});
  lib::check_apart("avg_pool2d forward", args.x, lib::bytes_of(g.in_elements(), args.dtype), args.y,
                   lib::bytes_of(g.out_elements(), args.dtype));
}

void check_args(const BackwardArgs& args) {
  const Geometry& g = args.geometry;
  check_geometry("avg_pool2d backward", g);
  lib::check_floating("avg_pool2d backward", "dtype", args.dtype);
  if (g.in_elements() == 0) return;
  lib::check_pointer("avg_pool2d backward", "dx", args.dx);
  if (g.out_elements() == 0) return;
  lib::check_pointer("avg_pool2d backward", "dy", args.dy);
  lib::check_apart("avg_pool2d backward", args.dy, lib::bytes_of(g.out_elements(), args.dtype), args.dx,
                   lib::bytes_of(g.in_elements(), args.dtype));
}

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  if (g.out_elements() == 0) return;
  const std::vector<double> x = lib::read_values(args.dtype, args.x, static_cast<std::size_t>(g.in_elements()));
  std::vector<double> y(static_cast<std::size_t>(g.out_elements()), 0.0);
  for_each_input(g, [&](std::size_t in, std::size_t out, double divisor) { y[out] += x[in] / divisor; });
  lib::write_values(args.dtype, args.y, y);
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  const Geometry& g = args.geometry;
  const std::vector<double> dy = lib::read_values(args.dtype, args.dy, static_cast<std::size_t>(g.out_elements()));
  std::vector<double> dx(static_cast<std::size_t>(g.in_elements()), 0.0);
  for_each_input(g, [&](std::size_t in, std::size_t out, double divisor) { dx[in] += dy[out] / divisor; });
  lib::write_values(args.dtype, args.dx, dx);
}

}  // namespace gradring::kernels::avg_pool2d
