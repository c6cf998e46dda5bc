// SPDX-License-Identifier: Apache-2.0
#include "kernels/relu/relu.h"

#include <vector>

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"

namespace gradring::kernels::relu {

void check_args(const ForwardArgs& args) {
  lib::check_floating("relu forward", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointer("relu forward", "x", args.x);
  lib::check_pointer("relu forward", "y", args.y);
  lib::check_same_or_apart("relu forward", args.x, args.y, args.elements * size_of(args.dtype));
}

void check_args(const BackwardArgs& args) {
  lib::check_floating("relu backward", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointer("relu backward", "y", args.y);
  lib::check_pointer("relu backward", "dy", args.dy);
  lib::check_pointer("relu backward", "dx", args.dx);
  const std::size_t bytes = args.elements * size_of(args.dtype);
  lib::check_same_or_apart("relu backward", args.y, args.dx, bytes);
  lib::check_same_or_apart("relu backward", args.dy, args.dx, bytes);
}

namespace reference {

void forward(const ForwardArgs& args) {
  check_args(args);
  std::vector<double> y = lib::read_values(args.dtype, args.x, args.elements);
  for (double& value : y)
    if (value < 0) value = 0;
  lib::write_values(args.dtype, args.y, y);
}

void backward(const BackwardArgs& args) {
  check_args(args);
  const std::vector<double> y = lib::read_values(args.dtype, args.y, args.elements);
  std::vector<double> dx = lib::read_values(args.dtype, args.dy, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i)
    if (!(y[i] > 0)) dx[i] = 0;
  lib::write_values(args.dtype, args.dx, dx);
}

}  // namespace reference
}  // namespace gradring::kernels::relu
