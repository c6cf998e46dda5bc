// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/activations/activations.h"

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/lib/reference.h"

namespace gradring::kernels {
namespace {

void check_forward(std::string_view op, const activations::ForwardArgs& args) {
  lib::check_floating(op, "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers(op, {{"x", args.x}, {"y", args.y}});
  lib::check_same_or_apart(op, args.x, args.y, args.elements * size_of(args.dtype));
}

void check_backward(std::string_view op, const activations::BackwardArgs& args) {
  lib::check_floating(op, "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers(op, {{"x", args.x}, {"dy", args.dy}, {"dx", args.dx}});
  const std::size_t bytes = args.elements * size_of(args.dtype);
  lib::check_same_or_apart(op, args.x, args.dx, bytes);
  lib::check_same_or_apart(op, args.dy, args.dx, bytes);
}

/// y[i] = value(x[i])
template <class Value>
void map(const activations::ForwardArgs& args, Value value) {
  std::vector<double> y = lib::read_values(args.dtype, args.x, args.elements);
  for (double& each : y) each = value(each);
  lib::write_values(args.dtype, args.y, y);
}

/// dx[i] = dy[i] * slope(x[i])
template <class Slope>
void map_gradient(const activations::BackwardArgs& args, Slope slope) {
  const std::vector<double> x = lib::read_values(args.dtype, args.x, args.elements);
  std::vector<double> dx = lib::read_values(args.dtype, args.dy, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i) dx[i] *= slope(x[i]);
  lib::write_values(args.dtype, args.dx, dx);
}

}  // namespace

namespace gelu {

void check_args(const ForwardArgs& args) { check_forward("gelu forward", args); }
void check_args(const BackwardArgs& args) { check_backward("gelu backward", args); }

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  map(args, [](double x) { return x * std::erfc(-x / std::numbers::sqrt2) / 2; });
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  map_gradient(args, [](double x) {
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    return std::erfc(-x / std::numbers::sqrt2) / 2 + x * density;
  });
}

}  // namespace gelu

namespace silu {

void check_args(const ForwardArgs& args) { check_forward("silu forward", args); }
void check_args(const BackwardArgs& args) { check_backward("silu backward", args); }

void reference_forward(const ForwardArgs& args) {
  check_args(args);
  map(args, [](double x) { return x / (1 + std::exp(-x)); });
}

void reference_backward(const BackwardArgs& args) {
  check_args(args);
  map_gradient(args, [](double x) {
    const double s = 1 / (1 + std::exp(-x));
    return s * (1 + x * (1 - s));
  });
}

}  // namespace silu
}  // namespace gradring::kernels
