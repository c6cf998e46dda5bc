// SPDX-License-Identifier: Apache-2.0
#include "kernels/sgd/sgd.h"

#include "kernels/lib/reference.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::sgd {

void check_args(const Args& args) {
  const Hyper& h = args.hyper;
  check(h.momentum >= 0, "sgd: momentum must not be negative");
  check(h.weight_decay >= 0, "sgd: weight_decay must not be negative");
  check(!h.nesterov || (h.momentum > 0 && h.dampening == 0), "sgd: nesterov needs a momentum above 0 and no dampening");
  lib::check_pointer("sgd", "state", args.state);
  if (args.elements == 0) return;
  lib::check_pointer("sgd", "weights", args.weights);
  lib::check_pointer("sgd", "gradients", args.gradients);
  if (h.momentum > 0) lib::check_pointer("sgd", "momentum_buffer", args.momentum_buffer);
  lib::check_weight_copy("sgd", args.copy_dtype, args.copy, args.weights, args.elements);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  if (args.state->non_finite) return;
  const Hyper& h = args.hyper;
  const bool first = args.state->applied_steps == 0;
  for (std::size_t i = 0; i < args.elements; ++i) {
    const double w = args.weights[i];
    double g = static_cast<double>(args.gradients[i]) * args.state->gradient_scale + h.weight_decay * w;
    if (h.momentum > 0) {
      const double buffer = first ? g : h.momentum * args.momentum_buffer[i] + (1 - h.dampening) * g;
      args.momentum_buffer[i] = static_cast<float>(buffer);
      g = h.nesterov ? g + h.momentum * buffer : buffer;
    }
    args.weights[i] = static_cast<float>(w - args.state->learning_rate * g);
  }
  if (args.copy)
    lib::write_values(args.copy_dtype, args.copy, lib::read_values(DType::f32, args.weights, args.elements));
}

}  // namespace reference
}  // namespace gradring::kernels::sgd
