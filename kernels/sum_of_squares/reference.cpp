// SPDX-License-Identifier: Apache-2.0
#include "kernels/sum_of_squares/sum_of_squares.h"

#include <cmath>
#include <vector>

#include "kernels/lib/arguments.h"
#include "kernels/lib/host_values.h"

namespace gradring::kernels::sum_of_squares {

void check_args(const BlocksArgs& args) {
  lib::check_floating("sum_of_squares", "dtype", args.dtype);
  if (args.elements) lib::check_pointer("sum_of_squares", "x", args.x);
  if (args.elements) lib::check_pointer("sum_of_squares", "blocks", args.blocks);
}

void check_args(const TotalArgs& args) {
  if (args.count) lib::check_pointer("sum_of_squares", "blocks", args.blocks);
  lib::check_pointer("sum_of_squares", "sum", args.sum);
  lib::check_pointer("sum_of_squares", "non_finite", args.non_finite);
}

void check_args(const Args& args) {
  lib::check_floating("sum_of_squares", "dtype", args.dtype);
  if (args.elements) lib::check_pointer("sum_of_squares", "x", args.x);
  if (args.elements) lib::check_pointer("sum_of_squares", "workspace", args.workspace);
  lib::check_pointer("sum_of_squares", "sum", args.sum);
  lib::check_pointer("sum_of_squares", "non_finite", args.non_finite);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  double sum = 0;
  bool non_finite = false;
  for (double x : lib::read_values(args.dtype, args.x, args.elements)) {
    sum += x * x;
    non_finite |= !std::isfinite(x);
  }
  *args.sum = static_cast<float>(sum);
  *args.non_finite = non_finite;
}

}  // namespace reference
}  // namespace gradring::kernels::sum_of_squares
