// SPDX-License-Identifier: Apache-2.0
#include "kernels/step_state/step_state.h"

#include "kernels/lib/arguments.h"

namespace gradring::kernels::step_state {

void check_args(const Args& args) { lib::check_pointer("step_state", "state", args.state); }

namespace reference {

void advance(const Args& args) {
  check_args(args);
  if (!args.state->non_finite) ++args.state->applied_steps;
}

}  // namespace reference
}  // namespace gradring::kernels::step_state
