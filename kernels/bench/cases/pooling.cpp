// SPDX-License-Identifier: Apache-2.0
// max_pool2d behind the first convolution.
#include "kernels/bench/case_families.h"

namespace gradring::kernels::bench {
namespace {

max_pool2d::Geometry geometry_of(CaseMaker& make) {
  return {.batch = make.extent("batch", 64),
          .height = make.extent("height", 26),
          .width = make.extent("width", 26),
          .channels = make.extent("channels", 32),
          .window = make.extent("window", 2),
          .stride = make.extent("stride", 2)};
}

KernelCase forward(CaseMaker& make) {
  const max_pool2d::Geometry g = geometry_of(make);
  KernelCase c = make.make("max_pool2d forward");
  BenchArray& x = make.input(c, make.dtype(), g.in_elements());
  BenchArray& y = make.output(c, make.dtype(), g.out_elements(), exact());
  BenchArray& codes = make.output(c, DType::u8, g.out_elements(), exact());
  const auto args = [&x, &y, &codes, g, dtype = make.dtype()](Side side) {
    return max_pool2d::ForwardArgs{
        .geometry = g, .dtype = dtype, .x = x.at(side), .y = y.at(side), .codes = codes.as<std::uint8_t>(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + y.bytes() + codes.bytes());
  c.reference = [=] { max_pool2d::reference::forward(args(Side::host)); };
  make.variants(c, make.kernels().max_pool2d, make.dtype(), [=](const max_pool2d::Variant& variant, Stream& stream) {
    variant.forward(stream, args(Side::device));
  });
  return c;
}

KernelCase backward(CaseMaker& make) {
  const max_pool2d::Geometry g = geometry_of(make);
  KernelCase c = make.make("max_pool2d backward");
  BenchArray& dy = make.input(c, make.dtype(), g.out_elements());
  BenchArray& codes = make.input(c, DType::u8, g.out_elements(), 0, static_cast<double>(g.window * g.window));
  // Windows that overlap add up.
  const std::int64_t overlaps = (g.window + g.stride - 1) / g.stride;
  BenchArray& dx = make.output(c, make.dtype(), g.in_elements(),
                               roundings(make.dtype(), static_cast<double>(overlaps * overlaps - 1)));
  const auto args = [&dy, &codes, &dx, g, dtype = make.dtype()](Side side) {
    return max_pool2d::BackwardArgs{
        .geometry = g, .dtype = dtype, .dy = dy.at(side), .codes = codes.as<std::uint8_t>(side), .dx = dx.at(side)};
  };
  c.bytes = static_cast<double>(dy.bytes() + codes.bytes() + dx.bytes());
  c.reference = [=] { max_pool2d::reference::backward(args(Side::host)); };
  make.variants(c, make.kernels().max_pool2d, make.dtype(), [=](const max_pool2d::Variant& variant, Stream& stream) {
    variant.backward(stream, args(Side::device));
  });
  return c;
}

}  // namespace

Cases max_pool2d_cases(CaseMaker& make) {
  Cases cases;
  cases.push_back(forward(make));
  cases.push_back(backward(make));
  return cases;
}

}  // namespace gradring::kernels::bench
