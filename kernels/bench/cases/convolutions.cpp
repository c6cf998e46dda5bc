// SPDX-License-Identifier: Apache-2.0
// conv2d: both convolutions of the seed ConvNet, or one of any shape.
#include <algorithm>

#include "kernels/bench/case_families.h"
#include "kernels/bench/convolution_shape.h"

namespace gradring::kernels::bench {
namespace {

double flops_of(const conv2d::Geometry& g) {
  return 2.0 * static_cast<double>(g.out_elements()) * static_cast<double>(g.filter_elements());
}

/// Enough for every variant.
std::size_t workspace_bytes(const CaseMaker& make, const conv2d::Geometry& g) {
  std::size_t bytes = 1;
  for (const conv2d::Variant& variant : make.kernels().conv2d)
    if (variant.supports(make.device(), make.dtype())) bytes = std::max(bytes, variant.workspace_bytes(g));
  return bytes;
}

KernelCase forward(CaseMaker& make, const SeedConvolution& seed) {
  const conv2d::Geometry g = convolution_of(make, seed);
  KernelCase c = make.make("conv2d forward");
  BenchArray& x = make.input(c, make.dtype(), g.in_elements());
  BenchArray& w = make.input(c, make.dtype(), g.weight_elements());
  BenchArray& y = make.output(c, make.dtype(), g.out_elements(), sum_of_products(make.dtype(), g.filter_elements()));
  const auto args = [&x, &w, &y, g, dtype = make.dtype()](Side side) {
    return conv2d::ForwardArgs{.geometry = g, .dtype = dtype, .x = x.at(side), .w = w.at(side), .y = y.at(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes());
  c.flops = flops_of(g);
  c.factors = make.dtype();
  c.reference = [=] { conv2d::reference::forward(args(Side::host)); };
  make.variants(c, make.kernels().conv2d, make.dtype(),
                [=](const conv2d::Variant& variant, Stream& stream) { variant.forward(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

KernelCase dgrad(CaseMaker& make, const SeedConvolution& seed) {
  const conv2d::Geometry g = convolution_of(make, seed);
  KernelCase c = make.make("conv2d dgrad");
  BenchArray& dy = make.input(c, make.dtype(), g.out_elements());
  BenchArray& w = make.input(c, make.dtype(), g.weight_elements());
  BenchArray& dx = make.output(c, make.dtype(), g.in_elements(),
                               sum_of_products(make.dtype(), g.kernel_height * g.kernel_width * g.out_channels));
  const auto args = [&dy, &w, &dx, g, dtype = make.dtype()](Side side) {
    return conv2d::DgradArgs{.geometry = g, .dtype = dtype, .dy = dy.at(side), .w = w.at(side), .dx = dx.at(side)};
  };
  c.bytes = static_cast<double>(dy.bytes() + w.bytes() + dx.bytes());
  c.flops = flops_of(g);
  c.factors = make.dtype();
  c.reference = [=] { conv2d::reference::dgrad(args(Side::host)); };
  make.variants(c, make.kernels().conv2d, make.dtype(),
                [=](const conv2d::Variant& variant, Stream& stream) { variant.dgrad(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

KernelCase wgrad(CaseMaker& make, const SeedConvolution& seed) {
  const conv2d::Geometry g = convolution_of(make, seed);
  KernelCase c = make.make("conv2d wgrad");
  BenchArray& x = make.input(c, make.dtype(), g.in_elements());
  BenchArray& dy = make.input(c, make.dtype(), g.out_elements());
  BenchArray& dw = make.output(c, DType::f32, g.weight_elements(),
                               sum_of_products(DType::f32, g.batch * g.out_height() * g.out_width()));
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, g));
  const auto args = [&x, &dy, &dw, &scratch, g, dtype = make.dtype()](Side side) {
    return conv2d::WgradArgs{.geometry = g,
                             .dtype = dtype,
                             .x = x.at(side),
                             .dy = dy.at(side),
                             .dw = dw.as<float>(side),
                             .workspace = scratch.at(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + dy.bytes() + dw.bytes());
  c.flops = flops_of(g);
  c.factors = make.dtype();
  c.reference = [=] { conv2d::reference::wgrad(args(Side::host)); };
  make.variants(c, make.kernels().conv2d, make.dtype(),
                [=](const conv2d::Variant& variant, Stream& stream) { variant.wgrad(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

}  // namespace

Cases conv2d_cases(CaseMaker& make) {
  Cases cases;
  for (const SeedConvolution& seed : seed_convolutions(make)) {
    cases.push_back(forward(make, seed));
    cases.push_back(dgrad(make, seed));
    cases.push_back(wgrad(make, seed));
  }
  return cases;
}

}  // namespace gradring::kernels::bench
