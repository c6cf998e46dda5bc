// SPDX-License-Identifier: Apache-2.0
// conv2d: both convolutions of the seed ConvNet, or one of any shape.
// grouped_conv2d: a depthwise convolution, or one of any number of groups.
// conv_relu_pool: a convolution with all that follows it.

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"
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
template <class Variant, class Geometry>
std::size_t workspace_bytes(const CaseMaker& make, std::span<const Variant> table, const Geometry& g) {
  std::size_t bytes = 1;
  for (const Variant& variant : table)
    if (can_run(variant, make.device(), make.dtype())) bytes = std::max(bytes, variant.workspace_bytes(g));
  return bytes;
}

/// A problem of conv2d or grouped_conv2d.
struct Convolution {
  std::string operation;
  std::span<const conv2d::Variant> table;
  conv2d::Geometry g;

  /// The products of a dense one may go to tensor cores.
  DType factors(const CaseMaker& make) const { return g.groups == 1 ? make.dtype() : DType::f32; }
};

Convolution one_group(CaseMaker& make, const SeedConvolution& seed) {
  return {"conv2d", make.kernels().conv2d, convolution_of(make, seed)};
}

/// By default depthwise, of MobileNet's size on small images: as many groups and filters as input channels.
Convolution in_groups(CaseMaker& make) {
  conv2d::Geometry g{.batch = make.extent("batch", 64),
                     .in_height = make.extent("height", 16),
                     .in_width = make.extent("width", 16),
                     .in_channels = make.extent("channels", 128)};
  g.groups = make.extent("groups", g.in_channels);
  g.out_channels = make.extent("filters", g.in_channels);
  g.kernel_height = g.kernel_width = make.extent("kernel", 3);
  g.stride = make.extent("stride", 1);
  g.padding = make.extent("padding", 1);
  return {"grouped_conv2d", make.kernels().grouped_conv2d, g};
}

/// Of a depthwise convolution, where there are plain loops; else nothing.
std::optional<PlainDepthwise> plain_loop_of(const CaseMaker& make, const Convolution& of) {
  const conv2d::Geometry& g = of.g;
  if (!make.has_plain_loops() || !g.is_depthwise() || g.groups == 1) return std::nullopt;
  const auto count = [](std::int64_t value) { return static_cast<int>(value); };
  return PlainDepthwise{.batch = count(g.batch),
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

/// What x is multiplied by. Variants may multiply it by the zeros of the padding, too: then it is finite.
BenchArray& factor_of_x(CaseMaker& make, KernelCase& c, const conv2d::Geometry& g, std::int64_t elements,
                        double high = 1, double step = 0) {
  const auto input = g.padding > 0 ? &CaseMaker::finite_input : &CaseMaker::input;
  return (make.*input)(c, make.dtype(), elements, -1, high, step);
}

KernelCase convolution_forward(CaseMaker& make, const Convolution& of) {
  const conv2d::Geometry& g = of.g;
  const DType dtype = make.dtype();
  KernelCase c = make.make(of.operation + " forward");
  BenchArray& x = make.input(c, dtype, g.in_elements());
  BenchArray& w = factor_of_x(make, c, g, g.weight_elements());
  BenchArray& y = make.output(c, "y", dtype, g.out_elements(), sum_of_products(dtype, g.filter_elements()));
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes());
  c.flops = flops_of(g);
  c.factors = of.factors(make);
  make.run(c, of.table, &conv2d::Variant::forward, conv2d::reference_forward, [&](Side side) {
    return conv2d::ForwardArgs{.geometry = g, .dtype = dtype, .x = x.at(side), .w = w.at(side), .y = y.at(side)};
  });
  if (const auto sizes = plain_loop_of(make, of))
    c.plain_loop = [&x, &w, &y, sizes = *sizes] {
      plain().depthwise_forward(sizes, x.floats(), w.floats(), y.floats());
    };
  return c;
}

KernelCase convolution_dgrad(CaseMaker& make, const Convolution& of) {
  const conv2d::Geometry& g = of.g;
  const DType dtype = make.dtype();
  KernelCase c = make.make(of.operation + " dgrad");
  BenchArray& dy = make.input(c, dtype, g.out_elements());
  BenchArray& w = make.finite_input(c, dtype, g.weight_elements());  // variants multiply it by padding, too
  BenchArray& dx = make.output(c, "dx", dtype, g.in_elements(), sum_of_products(dtype, g.taps() * g.group_filters()));
  c.bytes = static_cast<double>(dy.bytes() + w.bytes() + dx.bytes());
  c.flops = flops_of(g);
  c.factors = of.factors(make);
  make.run(c, of.table, &conv2d::Variant::dgrad, conv2d::reference_dgrad, [&](Side side) {
    return conv2d::DgradArgs{.geometry = g, .dtype = dtype, .dy = dy.at(side), .w = w.at(side), .dx = dx.at(side)};
  });
  if (const auto sizes = plain_loop_of(make, of))
    c.plain_loop = [&dy, &w, &dx, sizes = *sizes] {
      plain().depthwise_dgrad(sizes, dy.floats(), w.floats(), dx.floats());
    };
  return c;
}

KernelCase convolution_wgrad(CaseMaker& make, const Convolution& of, bool accumulate) {
  const conv2d::Geometry& g = of.g;
  const DType dtype = make.dtype();
  KernelCase c = make.make(of.operation + (accumulate ? " wgrad accumulated" : " wgrad"));
  BenchArray& x = make.input(c, dtype, g.in_elements());
  BenchArray& dy = factor_of_x(make, c, g, g.out_elements());
  BenchArray& dw = make.sum(c, "dw", DType::f32, g.weight_elements(),
                            sum_of_products(DType::f32, g.batch * g.out_height() * g.out_width()), accumulate);
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, of.table, g));
  c.bytes = static_cast<double>(x.bytes() + dy.bytes() + (accumulate ? 2u : 1u) * dw.bytes());
  c.flops = flops_of(g);
  c.factors = of.factors(make);
  make.run(c, of.table, &conv2d::Variant::wgrad, conv2d::reference_wgrad, [&](Side side) {
    return conv2d::WgradArgs{.geometry = g,
                             .dtype = dtype,
                             .x = x.at(side),
                             .dy = dy.at(side),
                             .dw = dw.as<float>(side),
                             .accumulate = accumulate,
                             .workspace = scratch.at(side)};
  });
  if (const auto sizes = plain_loop_of(make, of); sizes && !accumulate)
    c.plain_loop = [&x, &dy, &dw, sizes = *sizes] {
      plain().depthwise_wgrad(sizes, x.floats(), dy.floats(), dw.floats());
    };
  return c;
}

void add_passes(Cases& cases, CaseMaker& make, const auto& make_convolution) {
  cases.push_back(convolution_forward(make, make_convolution()));
  cases.push_back(convolution_dgrad(make, make_convolution()));
  for (const bool accumulate : {false, true}) cases.push_back(convolution_wgrad(make, make_convolution(), accumulate));
}

conv_relu_pool::Geometry pooled_convolution_of(CaseMaker& make, const SeedConvolution& seed) {
  const conv2d::Geometry conv = convolution_of(make, seed);
  return {.conv = conv, .window = make.extent("window", 2)};
}

/// Every index in a window as often as the others, and half of the outputs cut off.
std::vector<double> some_codes(const conv_relu_pool::Geometry& g) {
  const auto indices = static_cast<std::uint32_t>(g.window * g.window);
  const auto code = [indices](std::uint32_t number) {
    return number % (2 * indices) < indices ? number % indices : conv_relu_pool::kCutOff;
  };
  std::vector<double> packed;
  for (std::int64_t i = 0; i < g.code_bytes(); ++i) {
    const auto numbers = philox(1, static_cast<std::uint64_t>(i));
    packed.push_back(conv_relu_pool::packed_codes(code(numbers[0]), code(numbers[1])));
  }
  return packed;
}

/// x and b are -1 or 0, w is -1, 0 or 1: sums are exact in any order and, being small, in any type, so that every variant
/// finds the same maxima.
KernelCase conv_relu_pool_forward(CaseMaker& make, const SeedConvolution& seed) {
  const conv_relu_pool::Geometry g = pooled_convolution_of(make, seed);
  const DType dtype = make.dtype();
  KernelCase c = make.make("conv_relu_pool forward");
  BenchArray& x = make.input(c, dtype, g.conv.in_elements(), -1, 1, 1);
  BenchArray& w = factor_of_x(make, c, g.conv, g.conv.weight_elements(), 2, 1);
  BenchArray& b = make.input(c, dtype, g.conv.out_channels, -1, 1, 1);
  BenchArray& y = make.output(c, "y", dtype, g.out_elements(), sum_of_products(dtype, g.conv.filter_elements() + 1));
  BenchArray& codes = make.output(c, "codes", DType::u8, g.code_bytes(), exact());
  c.outputs.back().is_of_peers = false;  // libraries keep their own
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, make.kernels().conv_relu_pool, g));
  c.bytes = static_cast<double>(x.bytes() + w.bytes() + y.bytes() + codes.bytes());
  c.flops = 2.0 * static_cast<double>(g.out_elements() * g.window * g.window) *  // of all outputs that fill a window
            static_cast<double>(g.conv.filter_elements());
  c.factors = dtype;
  make.run(c, make.kernels().conv_relu_pool, &conv_relu_pool::Variant::forward, conv_relu_pool::reference_forward,
           [&](Side side) {
             return conv_relu_pool::ForwardArgs{.geometry = g,
                                                .dtype = dtype,
                                                .x = x.at(side),
                                                .w = w.at(side),
                                                .b = b.at(side),
                                                .y = y.at(side),
                                                .codes = codes.as<std::uint8_t>(side),
                                                .workspace = scratch.at(side)};
           });
  return c;
}

/// With dx, which the seed's first convolution does without, or accumulated and without it.
KernelCase conv_relu_pool_backward(CaseMaker& make, const SeedConvolution& seed, bool accumulate) {
  const conv_relu_pool::Geometry g = pooled_convolution_of(make, seed);
  const DType dtype = make.dtype();
  KernelCase c = make.make(accumulate ? "conv_relu_pool backward accumulated, without dx" : "conv_relu_pool backward");
  const std::int64_t positions = g.conv.batch * g.out_height() * g.out_width();
  // Of a NaN in x or w, variants may leave out the products with gradients that are 0.
  BenchArray& x = make.finite_input(c, dtype, g.conv.in_elements());
  BenchArray& w = make.finite_input(c, dtype, g.conv.weight_elements());
  BenchArray& dy = factor_of_x(make, c, g.conv, g.out_elements());
  BenchArray& codes = make.array(c, DType::u8, some_codes(g));
  const BenchArray* dx =
      accumulate
          ? nullptr
          : &make.output(c, "dx", dtype, g.conv.in_elements(),
                         sum_of_products(dtype, g.conv.kernel_height * g.conv.kernel_width * g.conv.out_channels));
  // The CPU's vectors multiply gradients by zeros beside the filters, too.
  if (dx) c.outputs.back().spreads = make.device().id().kind == DeviceKind::cpu;
  const Bound bound = sum_of_products(DType::f32, positions);
  BenchArray& dw = make.sum(c, "dw", DType::f32, g.conv.weight_elements(), bound, accumulate);
  BenchArray& db = make.sum(c, "db", DType::f32, g.conv.out_channels, bound, accumulate);
  BenchArray& scratch = make.workspace(c, workspace_bytes(make, make.kernels().conv_relu_pool, g));
  c.bytes = static_cast<double>(x.bytes() + dy.bytes() + codes.bytes() + (accumulate ? 2u : 1u) * dw.bytes() +
                                (dx ? w.bytes() + dx->bytes() : 0));
  const double passing = 0.5 * static_cast<double>(g.out_elements());  // some_codes cuts off the rest
  c.flops = (dx ? 4.0 : 2.0) * passing * static_cast<double>(g.conv.filter_elements());
  c.factors = dtype;
  make.run(c, make.kernels().conv_relu_pool, &conv_relu_pool::Variant::backward, conv_relu_pool::reference_backward,
           [&](Side side) {
             return conv_relu_pool::BackwardArgs{.geometry = g,
                                                 .dtype = dtype,
                                                 .x = x.at(side),
                                                 .w = w.at(side),
                                                 .dy = dy.at(side),
                                                 .codes = codes.as<std::uint8_t>(side),
                                                 .dx = dx ? dx->at(side) : nullptr,
                                                 .dw = dw.as<float>(side),
                                                 .db = db.as<float>(side),
                                                 .accumulate = accumulate,
                                                 .workspace = scratch.at(side)};
           });
  return c;
}

}  // namespace

Cases conv2d_cases(CaseMaker& make) {
  Cases cases;
  for (const SeedConvolution& seed : seed_convolutions(make))
    add_passes(cases, make, [&] { return one_group(make, seed); });
  return cases;
}

Cases grouped_conv2d_cases(CaseMaker& make) {
  Cases cases;
  add_passes(cases, make, [&] { return in_groups(make); });
  return cases;
}

Cases conv_relu_pool_cases(CaseMaker& make) {
  Cases cases;
  for (const SeedConvolution& seed : seed_convolutions(make)) {
    cases.push_back(conv_relu_pool_forward(make, seed));
    for (const bool accumulate : {false, true}) cases.push_back(conv_relu_pool_backward(make, seed, accumulate));
  }
  return cases;
}

}  // namespace gradring::kernels::bench
