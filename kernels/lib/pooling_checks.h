// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

/// What the check_args of max_pool2d and avg_pool2d have in common.
namespace gradring::kernels::lib {

/// `geometry`: that of the operation; windows are `window_height` x `window_width`.
template <class Geometry>
void check_pooling(std::string_view op, const Geometry& geometry, std::int64_t window_height,
                   std::int64_t window_width) {
  check_at_least(op, 0,
                 {{"batch", geometry.batch},
                  {"height", geometry.height},
                  {"width", geometry.width},
                  {"channels", geometry.channels}});
  check_at_least(op, 1,
                 {{"window height", window_height}, {"window width", window_width}, {"stride", geometry.stride}});
  const std::int64_t half = std::min(window_height, window_width) / 2;
  check(geometry.padding >= 0 && geometry.padding <= half, [&] {
    return std::string(op) + ": padding is " + std::to_string(geometry.padding) + ", expected 0 to " +
           std::to_string(half) + ", half of the window";
  });
}

/// Type and arrays of a ForwardArgs.
template <class Args>
void check_pooled(std::string_view op, const Args& args) {
  check_floating(op, "dtype", args.dtype);
  if (args.geometry.out_elements() == 0) return;
  check_pointers(op, {{"x", args.x}, {"y", args.y}});
  check_apart(op, args.x, bytes_of(args.geometry.in_elements(), args.dtype), args.y,
              bytes_of(args.geometry.out_elements(), args.dtype));
}

/// The same of a BackwardArgs, whose dx is written also where there is no dy.
template <class Args>
void check_pooled_gradient(std::string_view op, const Args& args) {
  check_floating(op, "dtype", args.dtype);
  if (args.geometry.in_elements() == 0) return;
  check_pointer(op, "dx", args.dx);
  if (args.geometry.out_elements() == 0) return;
  check_pointer(op, "dy", args.dy);
  check_apart(op, args.dy, bytes_of(args.geometry.out_elements(), args.dtype), args.dx,
              bytes_of(args.geometry.in_elements(), args.dtype));
}

}  // namespace gradring::kernels::lib
