// SPDX-License-Identifier: Apache-2.0
#include "kernels/ema/ema.h"
#include "kernels/lib/reference.h"
#include "kernels/runtime/error.h"

namespace gradring::kernels::ema {

void check_args(const Args& args) {
  check(args.decay >= 0 && args.decay < 1, "ema: decay must be at least 0 and below 1");
  lib::check_pointer("ema", "state", args.state);
  if (args.elements == 0) return;
  lib::check_pointer("ema", "weights", args.weights);
  lib::check_pointer("ema", "average", args.average);
}

namespace reference {

void run(const Args& args) {
  check_args(args);
  if (args.state->non_finite) return;
  const double share = args.state->applied_steps == 0 ? 1 : 1 - args.decay;
  for (std::size_t i = 0; i < args.elements; ++i) {
    const double before = args.average[i];
    args.average[i] = share == 1 ? args.weights[i] : static_cast<float>(before + share * (args.weights[i] - before));
  }
}

}  // namespace reference
}  // namespace gradring::kernels::ema
