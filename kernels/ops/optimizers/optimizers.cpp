// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/optimizers/optimizers.h"

#include <cmath>
#include <string>
#include <string_view>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels {
namespace {

template <class Args>
double learning_rate_of(const Args& args) {
  return args.learning_rate ? *args.learning_rate : args.state->learning_rate;
}

void check_end(std::string_view op, const step_state::StepState* state, const StepEnd& end) {
  if (!end.advance.state) return;
  step_state::check_args(end.advance);
  lib::check_pointer(op, "arrivals", end.arrivals);
  check(end.advance.state == state, [&] { return std::string(op) + ": the state that advances is another one"; });
}

}  // namespace
}  // namespace gradring::kernels

namespace gradring::kernels::adam {

void check_args(const Args& args) {
  const auto check_beta = [](std::string_view name, double beta) {
    check(beta >= 0 && beta < 1, [&] {
      return "adam: " + std::string(name) + " is " + std::to_string(beta) + ", expected a value in [0, 1)";
    });
  };
  check_beta("beta1", args.hyper.beta1);
  check_beta("beta2", args.hyper.beta2);
  check(args.hyper.epsilon >= 0,
        [&] { return "adam: epsilon is " + std::to_string(args.hyper.epsilon) + ", expected 0 or more"; });
  check(args.hyper.weight_decay >= 0,
        [&] { return "adam: weight_decay is " + std::to_string(args.hyper.weight_decay) + ", expected 0 or more"; });
  lib::check_pointer("adam", "state", args.state);
  check_end("adam", args.state, args.end);
  if (args.elements == 0) return;
  lib::check_pointers("adam", {{"weights", args.weights}, {"gradients", args.gradients}, {"m", args.m}, {"v", args.v}});
  lib::check_weight_copy("adam", args.copy_dtype, args.copy, args.weights, args.elements);
}

namespace {

void update(const Args& args) {
  const Hyper& h = args.hyper;
  const double lr = learning_rate_of(args);
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

}  // namespace

void reference_run(const Args& args) {
  check_args(args);
  if (!args.state->non_finite) update(args);
  if (args.end.advance.state) step_state::reference_advance(args.end.advance);
}

}  // namespace gradring::kernels::adam

namespace gradring::kernels::sgd {

void check_args(const Args& args) {
  const Hyper& h = args.hyper;
  check(h.momentum >= 0, [&] { return "sgd: momentum is " + std::to_string(h.momentum) + ", expected 0 or more"; });
  check(h.weight_decay >= 0,
        [&] { return "sgd: weight_decay is " + std::to_string(h.weight_decay) + ", expected 0 or more"; });
  check(!h.nesterov || (h.momentum > 0 && h.dampening == 0), [&] {
    return "sgd: nesterov with momentum " + std::to_string(h.momentum) + " and dampening " +
           std::to_string(h.dampening) + ", expected a momentum above 0 and no dampening";
  });
  lib::check_pointer("sgd", "state", args.state);
  check_end("sgd", args.state, args.end);
  if (args.elements == 0) return;
  lib::check_pointers("sgd", {{"weights", args.weights}, {"gradients", args.gradients}});
  if (h.momentum > 0) lib::check_pointer("sgd", "momentum_buffer", args.momentum_buffer);
  lib::check_weight_copy("sgd", args.copy_dtype, args.copy, args.weights, args.elements);
}

namespace {

void update(const Args& args) {
  const Hyper& h = args.hyper;
  const double lr = learning_rate_of(args);
  const bool first = args.state->applied_steps == 0;
  for (std::size_t i = 0; i < args.elements; ++i) {
    double w = args.weights[i];
    double g = static_cast<double>(args.gradients[i]) * args.state->gradient_scale;
    if (h.decoupled)
      w *= 1 - lr * h.weight_decay;
    else
      g += h.weight_decay * w;
    if (h.momentum > 0) {
      const double buffer = first ? g : h.momentum * args.momentum_buffer[i] + (1 - h.dampening) * g;
      args.momentum_buffer[i] = static_cast<float>(buffer);
      g = h.nesterov ? g + h.momentum * buffer : buffer;
    }
    args.weights[i] = static_cast<float>(w - lr * g);
  }
  if (args.copy)
    lib::write_values(args.copy_dtype, args.copy, lib::read_values(DType::f32, args.weights, args.elements));
}

}  // namespace

void reference_run(const Args& args) {
  check_args(args);
  if (!args.state->non_finite) update(args);
  if (args.end.advance.state) step_state::reference_advance(args.end.advance);
}

}  // namespace gradring::kernels::sgd

namespace gradring::kernels::ema {

void check_args(const Args& args) {
  check(args.decay >= 0 && args.decay < 1,
        [&] { return "ema: decay is " + std::to_string(args.decay) + ", expected a value in [0, 1)"; });
  lib::check_pointer("ema", "state", args.state);
  if (args.elements == 0) return;
  lib::check_pointers("ema", {{"weights", args.weights}, {"average", args.average}});
}

void reference_run(const Args& args) {
  check_args(args);
  if (args.state->non_finite) return;
  const double share = args.state->applied_steps == 0 ? 1 : 1 - args.decay;
  for (std::size_t i = 0; i < args.elements; ++i) {
    const double before = args.average[i];
    args.average[i] = share == 1 ? args.weights[i] : static_cast<float>(before + share * (args.weights[i] - before));
  }
}

}  // namespace gradring::kernels::ema
