// SPDX-License-Identifier: Apache-2.0
// peak: nothing but arithmetic.
#include <cmath>

#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {

Cases peak_cases(CaseMaker& make) {
  const std::int64_t tiles = make.extent("tiles", 256);
  const std::int64_t rounds = make.extent("rounds", 64);
  KernelCase c = make.make("peak");
  BenchArray& a = make.input(c, make.dtype(), peak::kRows * peak::kInner);
  BenchArray& b = make.input(c, make.dtype(), peak::kInner * peak::kColumns);
  BenchArray& y = make.input(c, DType::f32, tiles * peak::kRows * peak::kColumns);
  CaseMaker::also_output(c, y, [rounds](double expected) {
    return 32 * static_cast<double>(rounds) * 0x1p-24 * (std::fabs(expected) + 17);  // before, |y| is at most 1
  });
  const auto args = [&a, &b, &y, tiles, rounds, dtype = make.dtype()](Side side) {
    return peak::Args{
        .dtype = dtype, .tiles = tiles, .rounds = rounds, .a = a.at(side), .b = b.at(side), .y = y.as<float>(side)};
  };
  c.bytes = 2 * static_cast<double>(y.bytes());
  c.flops = peak::flops(args(Side::device));
  c.factors = make.dtype();
  c.reference = [=] { peak::reference::run(args(Side::host)); };
  make.variants(c, make.kernels().peak, make.dtype(),
                [=](const peak::Variant& variant, Stream& stream) { variant.run(stream, args(Side::device)); });
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
