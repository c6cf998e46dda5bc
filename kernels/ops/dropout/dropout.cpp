// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/dropout/dropout.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"
#include "kernels/runtime/philox.h"

namespace gradring::kernels::dropout {

std::uint32_t threshold_of(double p) {
  return static_cast<std::uint32_t>(std::min(std::floor(p * 0x1p32 + 0.5), 0x1p32 - 1));
}

void check_args(const Args& args) {
  lib::check_floating("dropout", "dtype", args.dtype);
  lib::check_at_least("dropout", 0, {{"samples", args.samples}, {"elements", args.elements}});
  lib::check_limit("dropout", "elements", args.elements, std::int64_t{1} << 34);
  lib::check_limit("dropout", "layer", args.draw.layer, (std::int64_t{1} << 31) - 1);
  check(args.p >= 0 && args.p < 1,
        [&] { return "dropout: p is " + std::to_string(args.p) + ", expected a value in [0, 1)"; });
  if (args.samples == 0 || args.elements == 0) return;
  lib::check_pointers("dropout", {{"x", args.x}, {"y", args.y}, {"step", args.draw.step}});
  lib::check_same_or_apart("dropout", args.x, args.y, lib::bytes_of(args.samples * args.elements, args.dtype));
}

void reference_run(const Args& args) {
  check_args(args);
  const Draw& draw = args.draw;
  const auto samples = static_cast<std::size_t>(args.samples);
  const auto elements = static_cast<std::size_t>(args.elements);
  if (samples == 0 || elements == 0) return;
  std::vector<double> y = lib::read_values(args.dtype, args.x, samples * elements);
  const std::uint64_t high =
      (0x80000000ull + static_cast<std::uint64_t>(draw.layer)) << 32 | static_cast<std::uint32_t>(*draw.step);
  const double scale = 1 / (1 - args.p);
  for (std::size_t r = 0; r < samples; ++r) {
    const std::int64_t number = draw.first + draw.stride * static_cast<std::int64_t>(r);
    for (std::size_t i = 0; i < elements; ++i) {
      const auto words = philox(draw.seed, static_cast<std::uint64_t>(number) << 32 | i / 4, high);
      y[r * elements + i] *= words[i % 4] >= threshold_of(args.p) ? scale : 0.0;
    }
  }
  lib::write_values(args.dtype, args.y, y);
}

}  // namespace gradring::kernels::dropout
