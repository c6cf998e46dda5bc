// SPDX-License-Identifier: Apache-2.0
#include "kernels/adam/adam.h"

#include <cmath>
#include <string>

#include "kernels/lib/reference.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::adam {

void check_args(const Args& args) {
  const auto check_beta = [](std::string_view name, double beta) {
    check(beta >= 0 && beta < 1,
          "adam: " + std::string(name) + " is " + std::to_string(beta) + ": it must be in [0, 1)");
  };
  check_beta("beta1", args.hyper.beta1);
  check_beta("beta2", args.hyper.beta2);
  check(args.hyper.epsilon >= 0, "adam: epsilon must not be negative");
  check(args.hyper.weight_decay >= 0, "adam: weight_decay must not be negative");
  lib::check_pointer("adam", "state", args.state);
  if (args.elements == 0) return;
  lib::check_pointer("adam", "weights", args.weights);
  lib::check_pointer("adam", "gradients", args.gradients);
  lib::check_pointer("adam", "m", args.m);
  lib::check_pointer("adam", "v", args.v);
  lib::check_weight_copy("adam", args.copy_dtype, args.copy, args.weights, args.elements);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  if (args.state->non_finite) return;
  const Hyper& h = args.hyper;
  const double lr = args.state->learning_rate;
  const double t = args.state->applied_steps + 1;
  const double correction1 = 1 - std::pow(h.beta1, t);
  const double correction2 = 1 - std::pow(h.beta2, t);
  for (std::size_t i = 0; i < args.elements; ++i) {
    double w = args.weights[i];
    double g = static_cast<double>(args.gradients[i]) * args.state->gradient_scale;
    if (h.decoupled)
      w *= 1 - lr * h.weight_decay;
    else
      g += h.weight_decay * w;
    const double m = h.beta1 * args.m[i] + (1 - h.beta1) * g;
    const double v = h.beta2 * args.v[i] + (1 - h.beta2) * g * g;
    w -= lr / correction1 * m / (std::sqrt(v) / std::sqrt(correction2) + h.epsilon);
    args.m[i] = static_cast<float>(m);
    args.v[i] = static_cast<float>(v);
    args.weights[i] = static_cast<float>(w);
  }
  if (args.copy)
    lib::write_values(args.copy_dtype, args.copy, lib::read_values(DType::f32, args.weights, args.elements));
}

}  // namespace reference
}  // namespace gradring::kernels::adam
