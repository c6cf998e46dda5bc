// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/peak/peak.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::peak {

void check_args(const Args& args) {
  lib::check_floating("peak", "dtype", args.dtype);
  lib::check_at_least("peak", 0, {{"tiles", args.tiles}, {"rounds", args.rounds}});
  if (args.tiles == 0) return;
  lib::check_pointers("peak", {{"a", args.a}, {"b", args.b}, {"y", args.y}});
}

void reference_run(const Args& args) {
  check_args(args);
  if (args.tiles == 0) return;
  const std::vector<double> a = lib::read_values(args.dtype, args.a, kRows * kK);
  const std::vector<double> b = lib::read_values(args.dtype, args.b, kK * kColumns);
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t row = 0; row < kRows; ++row)
    for (std::int64_t column = 0; column < kColumns; ++column) {
      double product = 0;
      for (std::int64_t k = 0; k < kK; ++k) product += a[at(row * kK + k)] * b[at(k * kColumns + column)];
      for (std::int64_t tile = 0; tile < args.tiles; ++tile) {
        float& y = args.y[(tile * kRows + row) * kColumns + column];
        y = static_cast<float>(y + static_cast<double>(args.rounds) * product);
      }
    }
}

}  // namespace gradring::kernels::peak
