// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"
#include "kernels/ops/exact_sum/exact_sum.h"

namespace gradring::kernels::exact_sum {
namespace {

double value_of(double unit, const float* scale) { return scale ? unit * static_cast<double>(*scale) : unit; }

void check_unit(double unit) {
  check(unit > 0 && std::isfinite(unit),
        [&] { return "exact_sum: unit is " + std::to_string(unit) + ", expected a finite value above 0"; });
}

}  // namespace

void check_args(const AddArgs& args) {
  check_unit(args.unit);
  lib::check_at_least("exact_sum", 1, {{"most", args.most}});
  lib::check_pointer("exact_sum", "refused", args.refused);
  if (args.elements == 0) return;
  lib::check_pointers("exact_sum", {{"x", args.x}, {"units", args.units}});
}

void check_args(const ReadArgs& args) {
  check_unit(args.unit);
  lib::check_pointer("exact_sum", "refused", args.refused);
  if (args.elements == 0) return;
  lib::check_pointers("exact_sum", {{"units", args.units}, {"x", args.x}});
}

void reference_add(const AddArgs& args) {
  check_args(args);
  const double per_unit = 1 / value_of(args.unit, args.scale);
  for (std::size_t i = 0; i < args.elements; ++i) {
    const double units = std::nearbyint(static_cast<double>(args.x[i]) * per_unit);
    if (std::abs(units) <= static_cast<double>(args.most))  // not so for NaN
      args.units[i] += static_cast<std::int64_t>(units);
    else
      ++*args.refused;
  }
}

void reference_read(const ReadArgs& args) {
  check_args(args);
  const double value = value_of(args.unit, args.scale);
  for (std::size_t i = 0; i < args.elements; ++i)
    args.x[i] = *args.refused != 0 ? std::numeric_limits<float>::quiet_NaN()
                                   : static_cast<float>(static_cast<double>(args.units[i]) * value);
}

}  // namespace gradring::kernels::exact_sum
