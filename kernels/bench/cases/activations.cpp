// SPDX-License-Identifier: Apache-2.0
// gelu, silu, dropout: loops over elements that compute.

#include <string>

#include "kernels/bench/kernel_case.h"
#include "kernels/bench/plain_loops.h"

namespace gradring::kernels::bench {
namespace {

constexpr std::int64_t kElements = 64 * 26 * 26 * 32;  // after the seed ConvNet's first convolution, at batch 64
constexpr double kMost = 4;                            // |x|
constexpr double kForwardError = 0x1p-21 * kMost;
constexpr double kBackwardError = 0x1p-20 * (1 + kMost);

KernelCase smooth_forward(CaseMaker& make, const std::string& name, std::span<const activations::Variant> table,
                          void (*reference)(const activations::ForwardArgs&),
                          void (*loop)(const float*, float*, std::size_t)) {
  const std::int64_t n = make.extent("elements", kElements);
  const DType dtype = make.dtype();
  KernelCase c = make.make(name + " forward");
  BenchArray& x = make.input(c, dtype, n, -kMost, kMost);
  BenchArray& y = make.output(c, "y", dtype, n, roundings(dtype, 2, kForwardError));
  c.bytes = 2 * static_cast<double>(y.bytes());
  make.run(c, table, &activations::Variant::forward, reference, [&](Side side) {
    return activations::ForwardArgs{.dtype = dtype, .x = x.at(side), .y = y.at(side), .elements = x.elements()};
  });
  if (make.has_plain_loops()) c.plain_loop = [=, &x, &y] { loop(x.floats(), y.floats(), x.elements()); };
  return c;
}

KernelCase smooth_backward(CaseMaker& make, const std::string& name, std::span<const activations::Variant> table,
                           void (*reference)(const activations::BackwardArgs&)) {
  const std::int64_t n = make.extent("elements", kElements);
  const DType dtype = make.dtype();
  KernelCase c = make.make(name + " backward");
  BenchArray& x = make.input(c, dtype, n, -kMost, kMost);
  BenchArray& dy = make.input(c, dtype, n);
  BenchArray& dx = make.output(c, "dx", dtype, n, roundings(dtype, 2, kBackwardError));
  c.bytes = 3 * static_cast<double>(dx.bytes());
  make.run(c, table, &activations::Variant::backward, reference, [&](Side side) {
    return activations::BackwardArgs{
        .dtype = dtype, .x = x.at(side), .dy = dy.at(side), .dx = dx.at(side), .elements = x.elements()};
  });
  return c;
}

}  // namespace

Cases gelu_cases(CaseMaker& make) {
  const auto table = make.kernels().gelu;
  Cases cases = only(smooth_forward(make, "gelu", table, gelu::reference_forward, plain().gelu));
  cases.push_back(smooth_backward(make, "gelu", table, gelu::reference_backward));
  return cases;
}

Cases silu_cases(CaseMaker& make) {
  const auto table = make.kernels().silu;
  Cases cases = only(smooth_forward(make, "silu", table, silu::reference_forward, plain().silu));
  cases.push_back(smooth_backward(make, "silu", table, silu::reference_backward));
  return cases;
}

Cases dropout_cases(CaseMaker& make) {
  const std::int64_t samples = make.extent("batch", 64);
  const std::int64_t elements = make.extent("elements", kElements / 64);
  const DType dtype = make.dtype();
  KernelCase c = make.make("dropout");
  BenchArray& x = make.input(c, dtype, samples * elements);
  BenchArray& y = make.output(c, "y", dtype, samples * elements, roundings(dtype, 4));
  BenchArray& step = make.object(c, std::int32_t{3});
  c.bytes = 2 * static_cast<double>(y.bytes());
  make.run(c, make.kernels().dropout, &dropout::Variant::run, dropout::reference_run, [&](Side side) {
    return dropout::Args{.dtype = dtype,
                         .samples = samples,
                         .elements = elements,
                         .x = x.at(side),
                         .y = y.at(side),
                         .draw = {.seed = 1, .layer = 2, .step = step.as<std::int32_t>(side), .first = 1000}};
  });
  return only(std::move(c));
}

}  // namespace gradring::kernels::bench
