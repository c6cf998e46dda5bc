// SPDX-License-Identifier: Apache-2.0
// grouped_conv2d: a depthwise convolution of MobileNet's size on small images, or one of any number of groups.

#include <algorithm>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

/// By default depthwise: as many groups and filters as input channels.
grouped_conv2d::Geometry grouped_geometry_of(CaseMaker& make) {
  grouped_conv2d::Geometry g{.batch = make.extent("batch", 64),
                             .in_height = make.extent("height", 16),
                             .in_width = make.extent("width", 16),
                             .in_channels = make.extent("channels", 128)};
  g.groups = make.extent("groups", g.in_channels);
  g.out_channels = make.extent("filters", g.in_channels);
  g.kernel_height = g.kernel_width = make.extent("kernel", 3);
  g.stride = make.extent("stride", 1);
  g.padding = make.extent("padding", 1);
  return g;
}

double flops_of(const grouped_conv2d::Geometry& g) {
  return 2.0 * static_cast<double>(g.out_elements()) * static_cast<double>(g.filter_elements());
}

bool has_plain_loop(const CaseMaker& make, const grouped_conv2d::Geometry& g) {
  return make.has_plain_loops() && g.is_depthwise();
}

PlainDepthwise plain_geometry(const grouped_conv2d::Geometry& g) {
  const auto count = [](std::int64_t value) { return static_cast<int>(value); };
  return {.batch = count(g.batch),
          .height = count(g.in_height),
          .width = count(g.in_width),
          .channels = count(g.in_channels),
          .out_height = count(g.out_height()),
          .out_width = count(g.out_width()),
          .kernel_height = count(g.kernel_height),
          .kernel_width = count(g.kernel_width),
          .stride = count(g.stride),
          .padding = count(g.padding)};
}

KernelCase grouped_conv2d_forward(CaseMaker& make) {
  const grouped_conv2d::Geometry g = grouped_geometry_of(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("grouped_conv2d forward");
  BenchArray& x = make.input(c, dtype, g.in_elements());
  BenchArray& w = make.input(c, dtype, g.weight_elements());
  BenchArray& y = make.output(c, "y", dtype, g.out_elements(), sum_of_products(dtype, g.filter_elements()));
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes());
  c.flops = flops_of(g);
  make.run(c, make.kernels().grouped_conv2d, &grouped_conv2d::Variant::forward, grouped_conv2d::reference_forward,
           [&](Side side) {
             return grouped_conv2d::ForwardArgs{
                 .geometry = g, .dtype = dtype, .x = x.at(side), .w = w.at(side), .y = y.at(side)};
           });
  if (has_plain_loop(make, g))
    c.plain_loop = [&x, &w, &y, sizes = plain_geometry(g)] {
      plain().depthwise_forward(sizes, x.floats(), w.floats(), y.floats());
    };
  return c;
}

KernelCase grouped_conv2d_dgrad(CaseMaker& make) {
  const grouped_conv2d::Geometry g = grouped_geometry_of(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make("grouped_conv2d dgrad");
  BenchArray& dy = make.input(c, dtype, g.out_elements());
  BenchArray& w = make.input(c, dtype, g.weight_elements());
  BenchArray& dx = make.output(c, "dx", dtype, g.in_elements(), sum_of_products(dtype, g.taps() * g.group_filters()));
  c.bytes = static_cast<double>(dy.bytes() + w.bytes() + dx.bytes());
  c.flops = flops_of(g);
  make.run(c, make.kernels().grouped_conv2d, &grouped_conv2d::Variant::dgrad, grouped_conv2d::reference_dgrad,
           [&](Side side) {
             return grouped_conv2d::DgradArgs{
                 .geometry = g, .dtype = dtype, .dy = dy.at(side), .w = w.at(side), .dx = dx.at(side)};
           });
  if (has_plain_loop(make, g))
    c.plain_loop = [&dy, &w, &dx, sizes = plain_geometry(g)] {
      plain().depthwise_dgrad(sizes, dy.floats(), w.floats(), dx.floats());
    };
  return c;
}

KernelCase grouped_conv2d_wgrad(CaseMaker& make, bool accumulate) {
  const grouped_conv2d::Geometry g = grouped_geometry_of(make);
  const DType dtype = make.dtype();
  KernelCase c = make.make(accumulate ? "grouped_conv2d wgrad accumulated" : "grouped_conv2d wgrad");
  BenchArray& x = make.input(c, dtype, g.in_elements());
  BenchArray& dy = make.input(c, dtype, g.out_elements());
  BenchArray& dw = make.sum(c, "dw", DType::f32, g.weight_elements(),
                            sum_of_products(DType::f32, g.batch * g.out_height() * g.out_width()), accumulate);
  std::size_t bytes = 1;
  for (const grouped_conv2d::Variant& variant : make.kernels().grouped_conv2d)
    if (can_run(variant, make.device(), dtype)) bytes = std::max(bytes, variant.workspace_bytes(g));
  BenchArray& scratch = make.workspace(c, bytes);
  c.bytes = static_cast<double>(x.bytes() + dy.bytes() + (accumulate ? 2u : 1u) * dw.bytes());
  c.flops = flops_of(g);
  make.run(c, make.kernels().grouped_conv2d, &grouped_conv2d::Variant::wgrad, grouped_conv2d::reference_wgrad,
           [&](Side side) {
             return grouped_conv2d::WgradArgs{.geometry = g,
                                              .dtype = dtype,
                                              .x = x.at(side),
                                              .dy = dy.at(side),
                                              .dw = dw.as<float>(side),
                                              .accumulate = accumulate,
                                              .workspace = scratch.at(side)};
           });
  if (!accumulate && has_plain_loop(make, g))
    c.plain_loop = [&x, &dy, &dw, sizes = plain_geometry(g)] {
      plain().depthwise_wgrad(sizes, x.floats(), dy.floats(), dw.floats());
    };
  return c;
}

}  // namespace

Cases grouped_conv2d_cases(CaseMaker& make) {
  Cases cases = cases_of(make, grouped_conv2d_forward, grouped_conv2d_dgrad);
  for (const bool accumulate : {false, true}) cases.push_back(grouped_conv2d_wgrad(make, accumulate));
  return cases;
}

}  // namespace gradring::kernels::bench
