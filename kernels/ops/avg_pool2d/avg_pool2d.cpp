// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/avg_pool2d/avg_pool2d.h"

#include <algorithm>
#include <vector>

#include "kernels/lib/pooling_checks.h"

namespace gradring::kernels::avg_pool2d {
namespace {

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
  lib::check_pooling("avg_pool2d forward", args.geometry, args.geometry.window_height, args.geometry.window_width);
  lib::check_pooled("avg_pool2d forward", args);
}

void check_args(const BackwardArgs& args) {
  lib::check_pooling("avg_pool2d backward", args.geometry, args.geometry.window_height, args.geometry.window_width);
  lib::check_pooled_gradient("avg_pool2d backward", args);
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
