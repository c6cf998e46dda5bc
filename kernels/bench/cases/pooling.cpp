// SPDX-License-Identifier: Apache-2.0
// max_pool2d: after the seed ConvNet's first convolution.
// avg_pool2d: at the same place, and of whole images, as before the last layer of a ResNet.

#include <string>

#include "kernels/bench/kernel_case.h"

namespace gradring::kernels::bench {
namespace {

max_pool2d::Geometry pooling_of(CaseMaker& make) {
  return {.batch = make.extent("batch", 64),
          .height = make.extent("height", 26),
          .width = make.extent("width", 26),
          .channels = make.extent("channels", 32),
          .window = make.extent("window", 2),
          .stride = make.extent("stride", 2),
          .padding = make.extent("padding", 0)};
}

KernelCase max_pool2d_forward(CaseMaker& make) {
  const max_pool2d::Geometry g = pooling_of(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("max_pool2d forward");
  BenchArray& x = make.input(c, dtype, g.in_elements());
  BenchArray& y = make.output(c, "y", dtype, g.out_elements(), exact());
  BenchArray& codes = make.output(c, "codes", DType::u8, g.out_elements(), exact());
  c.bytes = static_cast<double>(x.bytes() + y.bytes() + codes.bytes());
  make.run(c, make.kernels().max_pool2d, &max_pool2d::Variant::forward, max_pool2d::reference_forward, [&](Side side) {
    return max_pool2d::ForwardArgs{
        .geometry = g, .dtype = dtype, .x = x.at(side), .y = y.at(side), .codes = codes.as<std::uint8_t>(side)};
  });
  return c;
}

KernelCase max_pool2d_backward(CaseMaker& make) {
  const max_pool2d::Geometry g = pooling_of(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("max_pool2d backward");
  BenchArray& dy = make.input(c, dtype, g.out_elements());
  BenchArray& codes = make.input(c, DType::u8, g.out_elements(), 0, static_cast<double>(g.window * g.window));
  const std::int64_t overlaps = (g.window + g.stride - 1) / g.stride;  // windows that overlap add up
  BenchArray& dx =
      make.output(c, "dx", dtype, g.in_elements(), roundings(dtype, static_cast<double>(overlaps * overlaps - 1)));
  c.bytes = static_cast<double>(dy.bytes() + codes.bytes() + dx.bytes());
  make.run(
      c, make.kernels().max_pool2d, &max_pool2d::Variant::backward, max_pool2d::reference_backward, [&](Side side) {
        return max_pool2d::BackwardArgs{
            .geometry = g, .dtype = dtype, .dy = dy.at(side), .codes = codes.as<std::uint8_t>(side), .dx = dx.at(side)};
      });
  return c;
}

/// Windows as those of max_pool2d, or whole images.
avg_pool2d::Geometry averaging_of(CaseMaker& make, bool global) {
  avg_pool2d::Geometry g{.batch = make.extent("batch", 64),
                         .height = make.extent("height", global ? 7 : 26),
                         .width = make.extent("width", global ? 7 : 26),
                         .channels = make.extent("channels", global ? 512 : 32)};
  if (global) return avg_pool2d::Geometry::global(g.batch, g.height, g.width, g.channels);
  g.window_height = g.window_width = make.extent("window", 2);
  g.stride = make.extent("stride", 2);
  g.padding = make.extent("padding", 0);
  return g;
}

std::string averaging_name(bool global, const std::string& pass) {
  return (global ? "avg_pool2d global " : "avg_pool2d ") + pass;
}

KernelCase avg_pool2d_forward(CaseMaker& make, bool global) {
  const avg_pool2d::Geometry g = averaging_of(make, global);
  const DType dtype = make.dtype();
  KernelCase c = make.make(averaging_name(global, "forward"));
  BenchArray& x = make.input(c, dtype, g.in_elements());
  const auto terms = static_cast<double>(g.window_elements());
  BenchArray& y = make.output(c, "y", dtype, g.out_elements(), roundings(dtype, 2, (terms + 2) * 0x1p-24));
  c.bytes = static_cast<double>(x.bytes() + y.bytes());
  c.flops = terms * static_cast<double>(g.out_elements());
  make.run(c, make.kernels().avg_pool2d, &avg_pool2d::Variant::forward, avg_pool2d::reference_forward, [&](Side side) {
    return avg_pool2d::ForwardArgs{.geometry = g, .dtype = dtype, .x = x.at(side), .y = y.at(side)};
  });
  return c;
}

KernelCase avg_pool2d_backward(CaseMaker& make, bool global) {
  const avg_pool2d::Geometry g = averaging_of(make, global);
  const DType dtype = make.dtype();
  KernelCase c = make.make(averaging_name(global, "backward"));
  BenchArray& dy = make.input(c, dtype, g.out_elements());
  const auto terms = static_cast<double>(g.window_elements());
  BenchArray& dx = make.output(c, "dx", dtype, g.in_elements(), roundings(dtype, 2, (terms + 2) * 0x1p-24));
  c.bytes = static_cast<double>(dy.bytes() + dx.bytes());
  make.run(c, make.kernels().avg_pool2d, &avg_pool2d::Variant::backward, avg_pool2d::reference_backward,
           [&](Side side) {
             return avg_pool2d::BackwardArgs{.geometry = g, .dtype = dtype, .dy = dy.at(side), .dx = dx.at(side)};
           });
  return c;
}

}  // namespace

Cases max_pool2d_cases(CaseMaker& make) { return cases_of(make, max_pool2d_forward, max_pool2d_backward); }

Cases avg_pool2d_cases(CaseMaker& make) {
  Cases cases;
  for (const bool global : {false, true}) {
    cases.push_back(avg_pool2d_forward(make, global));
    cases.push_back(avg_pool2d_backward(make, global));
  }
  return cases;
}

}  // namespace gradring::kernels::bench
