// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/gradient_statistics/gradient_statistics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::gradient_statistics {
namespace {

template <class SomeArgs>
void check_results(const SomeArgs& args) {
  lib::check_pointers("gradient_statistics", {{"sum", args.sum},
                                              {"non_finite", args.non_finite},
                                              {"first_non_finite", args.first_non_finite},
                                              {"tiny_count", args.tiny_count}});
}

}  // namespace

void check_args(const BlocksArgs& args) {
  lib::check_floating("gradient_statistics", "dtype", args.dtype);
  if (args.elements)
    lib::check_pointers("gradient_statistics", {{"x", args.x}, {"blocks", args.blocks}, {"notes", args.notes}});
}

void check_args(const TotalArgs& args) {
  if (args.count) lib::check_pointers("gradient_statistics", {{"blocks", args.blocks}, {"notes", args.notes}});
  check_results(args);
}

void check_args(const Args& args) {
  lib::check_floating("gradient_statistics", "dtype", args.dtype);
  if (args.elements) lib::check_pointers("gradient_statistics", {{"x", args.x}, {"workspace", args.workspace}});
  check_results(args);
}

void reference_run(const Args& args) {
  check_args(args);
  double sum = 0;
  std::int64_t first = -1, tiny = 0;
  const std::vector<double> values = lib::read_values(args.dtype, args.x, args.elements);
  for (std::size_t block = 0; block < values.size(); block += kBlock) {
    std::int64_t first_here = -1, tiny_here = 0;
    for (std::size_t i = block; i < std::min(block + kBlock, values.size()); ++i) {
      sum += values[i] * values[i];
      if (first_here < 0 && !std::isfinite(values[i])) first_here = static_cast<std::int64_t>(i);
      tiny_here += std::abs(values[i]) < double{args.tiny};
    }
    if (first_here < 0) tiny += tiny_here;
    if (first < 0) first = first_here;
  }
  *args.sum = static_cast<float>(sum);
  *args.non_finite = first >= 0;
  *args.first_non_finite = first;
  *args.tiny_count = tiny;
}

}  // namespace gradring::kernels::gradient_statistics
