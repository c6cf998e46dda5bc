// SPDX-License-Identifier: Apache-2.0
#include "kernels/ops/step_state/step_state.h"

#include <algorithm>
#include <cmath>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::kernels::step_state {

void check_args(const PrepareArgs& args) {
  lib::check_pointers("step_state", {{"state", args.state}, {"learning_rates", args.learning_rates}});
  lib::check_at_least("step_state", 1, {{"count", args.count}, {"groups", args.groups}});
  if (args.groups > 1) lib::check_pointer("step_state", "rates", args.rates);
  check(!args.sum_of_squares || args.most_norm > 0,
        [&] { return "step_state: most_norm is " + std::to_string(args.most_norm) + ", expected a value above 0"; });
}

void check_args(const AdvanceArgs& args) {
  lib::check_pointer("step_state", "state", args.state);
  if (args.reports.ring) {
    lib::check_pointers("step_state", {{"written", args.reports.written}, {"loss_sum", args.reports.loss_sum}});
    lib::check_at_least("step_state", 1, {{"reports", args.reports.count}});
  }
  if (!args.dynamic) return;
  const LossScalePolicy& policy = args.policy;
  check(policy.growth_factor > 1 && std::isfinite(policy.growth_factor), [&] {
    return "step_state: growth_factor is " + std::to_string(policy.growth_factor) + ", expected a finite value above 1";
  });
  check(policy.backoff_factor > 0 && policy.backoff_factor < 1, [&] {
    return "step_state: backoff_factor is " + std::to_string(policy.backoff_factor) + ", expected a value in (0, 1)";
  });
  lib::check_at_least("step_state", 1, {{"growth_interval", policy.growth_interval}});
}

void reference_prepare(const PrepareArgs& args) {
  check_args(args);
  StepState& state = *args.state;
  const std::int32_t step = std::min(state.applied_steps, args.count - 1);
  state.learning_rate = args.learning_rates[step];
  for (std::int32_t group = 0; args.rates && group < args.groups; ++group)
    args.rates[group] = args.learning_rates[static_cast<std::int64_t>(group) * args.count + step];
  double scale = 1 / static_cast<double>(state.loss_scale);
  if (args.sum_of_squares) {
    const double norm = std::sqrt(static_cast<double>(*args.sum_of_squares)) * scale;
    state.gradient_norm = static_cast<float>(norm);
    if (!state.non_finite) scale *= std::min(1.0, args.most_norm / (norm + kNormFloor));
  }
  state.gradient_scale = static_cast<float>(scale);
}

void reference_advance(const AdvanceArgs& args) {
  check_args(args);
  StepState& state = *args.state;
  const LossScalePolicy& policy = args.policy;
  const Reports& reports = args.reports;
  if (reports.ring) reports.ring[(*reports.written)++ % reports.count] = {state, *reports.loss_sum};
  if (state.non_finite)
    ++state.skipped_steps;
  else
    ++state.applied_steps;
  if (!args.dynamic) return;
  if (state.non_finite) {
    state.loss_scale = static_cast<float>(static_cast<double>(state.loss_scale) * policy.backoff_factor);
    state.growth_tracker = 0;
  } else if (state.growth_tracker + 1 == policy.growth_interval) {
    const auto grown = static_cast<float>(static_cast<double>(state.loss_scale) * policy.growth_factor);
    if (std::isfinite(grown)) state.loss_scale = grown;
    state.growth_tracker = 0;
  } else {
    ++state.growth_tracker;
  }
}

}  // namespace gradring::kernels::step_state
