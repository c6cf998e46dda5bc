// SPDX-License-Identifier: Apache-2.0
#include "kernels/scale/scale.h"

#include <vector>

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"

namespace gradring::kernels::scale {

void check_args(const Args& args) {
  lib::check_floating("scale", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointer("scale", "x", args.x);
  lib::check_pointer("scale", "y", args.y);
  lib::check_same_or_apart("scale", args.x, args.y, args.elements * size_of(args.dtype));
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  const std::vector<double> x = lib::read_values(args.dtype, args.x, args.elements);
  std::vector<double> y = x;
  for (std::size_t i = 0; i < args.elements; ++i) y[i] = args.factor * x[i];
  lib::write_values(args.dtype, args.y, y);
}

}  // namespace reference
}  // namespace gradring::kernels::scale
