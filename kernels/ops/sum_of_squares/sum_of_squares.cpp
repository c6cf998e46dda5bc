// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/sum_of_squares/sum_of_squares.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels::sum_of_squares {
namespace {

/// Of a call that ends with the results.
template <class SomeArgs>
void check_results(const SomeArgs& args) {
  lib::check_pointers("sum_of_squares", {{"sum", args.sum},
                                         {"non_finite", args.non_finite},
                                         {"first_non_finite", args.first_non_finite},
                                         {"tiny_count", args.tiny_count}});
}

}  // namespace

void check_args(const BlocksArgs& args) {
  lib::check_floating("sum_of_squares", "dtype", args.dtype);
  if (args.elements) lib::check_pointer("sum_of_squares", "x", args.x);
  if (args.elements) lib::check_pointer("sum_of_squares", "blocks", args.blocks);
  if (args.elements) lib::check_pointer("sum_of_squares", "notes", args.notes);
}

void check_args(const TotalArgs& args) {
  if (args.count) lib::check_pointer("sum_of_squares", "blocks", args.blocks);
  if (args.count) lib::check_pointer("sum_of_squares", "notes", args.notes);
  check_results(args);
}

void check_args(const Args& args) {
  lib::check_floating("sum_of_squares", "dtype", args.dtype);
  if (args.elements) lib::check_pointer("sum_of_squares", "x", args.x);
  if (args.elements) lib::check_pointer("sum_of_squares", "workspace", args.workspace);
  check_results(args);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  double sum = 0;
  std::int64_t first = -1, tiny = 0;
  const std::vector<double> values = lib::read_values(args.dtype, args.x, args.elements);
  for (std::size_t block = 0; block < values.size(); block += kBlock) {
    std::int64_t bad = -1, tiny_here = 0;
    for (std::size_t i = block; i < std::min(block + kBlock, values.size()); ++i) {
      sum += values[i] * values[i];
      if (bad < 0 && !std::isfinite(values[i])) bad = static_cast<std::int64_t>(i);
      tiny_here += std::abs(values[i]) < double{args.tiny};
    }
    if (bad < 0) tiny += tiny_here;
    if (first < 0) first = bad;
  }
  *args.sum = static_cast<float>(sum);
  *args.non_finite = first >= 0;
  *args.first_non_finite = first;
  *args.tiny_count = tiny;
}

}  // namespace reference
}  // namespace gradring::kernels::sum_of_squares
