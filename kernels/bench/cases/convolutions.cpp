// SPDX-License-Identifier: Apache-2.0
// conv2d: both convolutions of the seed ConvNet, or one of any shape.
// conv_relu_pool: a convolution with all that follows it.

#include <algorithm>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/conv2d/conv2d.h"
#include "kernels/runtime/philox.h"

namespace gradring::kernels::bench {
namespace {

/// What differs between the seed ConvNet's two convolutions.
struct SeedConvolution {
  std::int64_t side, in, out;
};

/// Both; only the second where the user gave an extent in which they differ.
std::vector<SeedConvolution> seed_convolutions(const CaseMaker& make) {
  const SeedConvolution first{.side = 28, .in = 1, .out = 32};
  const SeedConvolution second{.side = 13, .in = 32, .out = 64};
  for (const char* name : {"height", "width", "in", "out"})
    if (make.is_given(name)) return {second};
  return {first, second};
}

/// The seed's, with the extents that the user gave: batch, height, width, in, out, kernel, stride, padding.
conv2d::Geometry convolution_of(CaseMaker& make, const SeedConvolution& seed) {
  conv2d::Geometry g{.batch = make.extent("batch", 64),
                     .in_height = make.extent("height", seed.side),
                     .in_width = make.extent("width", seed.side),
                     .in_channels = make.extent("in", seed.in),
                     .out_channels = make.extent("out", seed.out)};
  g.kernel_height = g.kernel_width = make.extent("kernel", 3);
  g.stride = make.extent("stride", 1);
  g.padding = make.extent("padding", 0);
  return g;
}

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

namespace {

using conv_relu_pool::BackwardArgs;
using conv_relu_pool::ForwardArgs;
using conv_relu_pool::Geometry;
using conv_relu_pool::Variant;

Geometry geometry_of(CaseMaker& make, const SeedConvolution& seed) {
  const conv2d::Geometry conv = convolution_of(make, seed);
  return {.conv = conv, .window = make.extent("window", 2)};
}

/// Of all outputs that fill a window.
double forward_flops(const Geometry& g) {
  return 2.0 * static_cast<double>(g.out_elements() * g.window * g.window) *
         static_cast<double>(g.conv.filter_elements());
}

/// Enough for every variant.
std::size_t workspace_bytes(const CaseMaker& make, const Geometry& g) {
  std::size_t bytes = 1;
  for (const Variant& variant : make.kernels().conv_relu_pool)
    if (variant.supports(make.device(), make.dtype())) bytes = std::max(bytes, variant.workspace_bytes(g));
  return bytes;
}

/// Every place of a window as often as the others, and half of the outputs cut off.
std::vector<double> some_codes(const Geometry& g) {
  const auto places = static_cast<std::uint32_t>(g.window * g.window);
  const auto code = [places](std::uint32_t number) {
    return number % (2 * places) < places ? number % places : conv_relu_pool::kCutOff;
  };
  std::vector<double> packed;
  for (std::int64_t i = 0; i < g.code_bytes(); ++i) {
    const auto numbers = philox(1, static_cast<std::uint64_t>(i));
    packed.push_back(conv_relu_pool::packed_codes(code(numbers[0]), code(numbers[1])));
  }
  return packed;
}

/// The codes are no result to compare: where two maxima are closer than rounding, variants may choose differently.
KernelCase fused_forward(CaseMaker& make, const SeedConvolution& seed) {
  const Geometry g = geometry_of(make, seed);
  KernelCase c = make.make("conv_relu_pool forward");
  BenchArray& x = make.input(c, make.dtype(), g.conv.in_elements());
  BenchArray& w = make.input(c, make.dtype(), g.conv.weight_elements());
  BenchArray& b = make.input(c, make.dtype(), g.conv.out_channels);
  BenchArray& y =
      make.output(c, make.dtype(), g.out_elements(), sum_of_products(make.dtype(), g.conv.filter_elements() + 1));
  BenchArray& codes = make.workspace(c, static_cast<std::size_t>(g.code_bytes()));
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, g));
  const auto args = [&x, &w, &b, &y, &codes, &scratch, g, dtype = make.dtype()](Side side) {
    return ForwardArgs{.geometry = g,
                       .dtype = dtype,
                       .x = x.at(side),
                       .w = w.at(side),
                       .b = b.at(side),
                       .y = y.at(side),
                       .codes = codes.as<std::uint8_t>(side),
                       .workspace = scratch.at(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes() + codes.bytes());
  c.flops = forward_flops(g);
  c.factors = make.dtype();
  c.reference = [=] { conv_relu_pool::reference::forward(args(Side::host)); };
  make.variants(c, make.kernels().conv_relu_pool, make.dtype(),
                [=](const Variant& variant, Stream& stream) { variant.forward(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

/// With dx, which the seed's first convolution does without.
KernelCase fused_backward(CaseMaker& make, const SeedConvolution& seed) {
  const Geometry g = geometry_of(make, seed);
  KernelCase c = make.make("conv_relu_pool backward");
  const std::int64_t positions = g.conv.batch * g.out_height() * g.out_width();
  BenchArray& x = make.input(c, make.dtype(), g.conv.in_elements());
  BenchArray& w = make.input(c, make.dtype(), g.conv.weight_elements());
  BenchArray& dy = make.input(c, make.dtype(), g.out_elements());
  BenchArray& codes = make.array(c, DType::u8, some_codes(g));
  BenchArray& dx =
      make.output(c, make.dtype(), g.conv.in_elements(),
                  sum_of_products(make.dtype(), g.conv.kernel_height * g.conv.kernel_width * g.conv.out_channels));
  BenchArray& dw = make.output(c, DType::f32, g.conv.weight_elements(), sum_of_products(DType::f32, positions));
  BenchArray& db = make.output(c, DType::f32, g.conv.out_channels, sum_of_products(DType::f32, positions));
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, g));
  const auto args = [&x, &w, &dy, &codes, &dx, &dw, &db, &scratch, g, dtype = make.dtype()](Side side) {
    return BackwardArgs{.geometry = g,
                        .dtype = dtype,
                        .x = x.at(side),
                        .w = w.at(side),
                        .dy = dy.at(side),
                        .codes = codes.as<std::uint8_t>(side),
                        .dx = dx.at(side),
                        .dw = dw.as<float>(side),
                        .db = db.as<float>(side),
                        .workspace = scratch.at(side)};
  };
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + dy.bytes() + codes.bytes() + dx.bytes() + dw.bytes());
  const double passing = 0.5 * static_cast<double>(g.out_elements());  // some_codes cuts off the rest
  c.flops = 4.0 * passing * static_cast<double>(g.conv.filter_elements());
  c.factors = make.dtype();
  c.reference = [=] { conv_relu_pool::reference::backward(args(Side::host)); };
  make.variants(c, make.kernels().conv_relu_pool, make.dtype(),
                [=](const Variant& variant, Stream& stream) { variant.backward(stream, args(Side::device)); });
  make.peer(c, args(Side::device));
  return c;
}

}  // namespace

Cases conv_relu_pool_cases(CaseMaker& make) {
  Cases cases;
  for (const SeedConvolution& seed : seed_convolutions(make)) {
    cases.push_back(fused_forward(make, seed));
    cases.push_back(fused_backward(make, seed));
  }
  return cases;
}

}  // namespace gradring::kernels::bench
