// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/muon/muon.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::muon {

void check_args(const MomentumArgs& args) {
  check(args.momentum >= 0,
        [&] { return "muon: momentum is " + std::to_string(args.momentum) + ", expected 0 or more"; });
  lib::check_pointer("muon", "state", args.state);
  if (args.elements == 0) return;
  lib::check_pointers("muon", {{"gradients", args.gradients}, {"update", args.update}});
  if (args.momentum > 0) lib::check_pointer("muon", "buffer", args.buffer);
}

void check_args(const NormalizeArgs& args) {
  lib::check_floating("muon", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers("muon", {{"update", args.update}, {"sum_of_squares", args.sum_of_squares}, {"x", args.x}});
}

void check_args(const CombineArgs& args) {
  lib::check_floating("muon", "dtype", args.dtype);
  if (args.elements == 0) return;
  lib::check_pointers("muon", {{"x", args.x}, {"products", args.products}, {"y", args.y}});
}

void check_args(const ApplyArgs& args) {
  lib::check_floating("muon", "dtype", args.dtype);
  check(args.weight_decay >= 0,
        [&] { return "muon: weight_decay is " + std::to_string(args.weight_decay) + ", expected 0 or more"; });
  lib::check_pointers("muon", {{"state", args.state}, {"learning_rate", args.learning_rate}});
  if (args.elements == 0) return;
  lib::check_pointers("muon", {{"weights", args.weights}, {"x", args.x}});
  lib::check_weight_copy("muon", args.copy_dtype, args.copy, args.weights, args.elements);
}

void reference_momentum(const MomentumArgs& args) {
  check_args(args);
  if (args.state->non_finite) return;
  for (std::size_t i = 0; i < args.elements; ++i) {
    const double g = static_cast<double>(args.gradients[i]) * args.state->gradient_scale;
    const double buffer = args.momentum > 0 ? args.momentum * args.buffer[i] + g : g;
    if (args.momentum > 0) args.buffer[i] = static_cast<float>(buffer);
    args.update[i] = static_cast<float>(args.nesterov ? g + args.momentum * buffer : buffer);
  }
}

void reference_normalize(const NormalizeArgs& args) {
  check_args(args);
  if (args.elements == 0) return;
  std::vector<double> x = lib::read_values(DType::f32, args.update, args.elements);
  const double norm = std::max(std::sqrt(static_cast<double>(*args.sum_of_squares)), static_cast<double>(kLeastNorm));
  for (double& value : x) value /= norm;
  lib::write_values(args.dtype, args.x, x);
}

void reference_combine(const CombineArgs& args) {
  check_args(args);
  if (args.elements == 0) return;
  std::vector<double> y = lib::read_values(args.dtype, args.x, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i)
    y[i] = static_cast<double>(args.alpha) * y[i] + static_cast<double>(args.beta) * args.products[i];
  lib::write_values(args.dtype, args.y, y);
}

void reference_apply(const ApplyArgs& args) {
  check_args(args);
  if (args.state->non_finite || args.elements == 0 || *args.learning_rate == 0) return;
  const double lr = *args.learning_rate;
  double shrink = 1 - lr * args.weight_decay;
  if (args.weight_sum_of_squares && *args.weight_sum_of_squares > 0)
    shrink = args.norm / std::sqrt(static_cast<double>(*args.weight_sum_of_squares));
  const std::vector<double> x = lib::read_values(args.dtype, args.x, args.elements);
  for (std::size_t i = 0; i < args.elements; ++i)
    args.weights[i] = static_cast<float>(shrink * args.weights[i] - lr * args.factor * x[i]);
  if (args.copy)
    lib::write_values(args.copy_dtype, args.copy, lib::read_values(DType::f32, args.weights, args.elements));
}

}  // namespace gradring::kernels::muon
