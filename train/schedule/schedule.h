// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradring::train {

/// What a user may say about how the learning rate changes from step to step.
struct ScheduleSpec {
  std::string name = "constant";  ///< constant, step, cosine, one-cycle
  std::int64_t warmup_steps = 0;  ///< before it, in which the rate rises evenly to the peak; one-cycle has its own
  std::int64_t step_size = 0;     ///< step: applied steps between two falls
  double gamma = 0.1;             ///< step: what the rate is multiplied by then
  double least = 0;               ///< cosine: the rate at the end
};

/// The learning rate of step `step` of `steps`, counted from 0 without skipped ones; w = warmup_steps, t = step - w, T = steps - w:
///   step < w:    peak * (step + 1) / w
///   constant:    peak
///   step:        peak * gamma ^ floor(t / step_size)
///   cosine:      least + (peak - least) * (1 + cos(pi t / T)) / 2
///   one-cycle:   cosine from peak / 25 to peak over the first 30 % of the steps, then to peak / 250,000
///
/// Errors    InvalidArgument for another name, a step_size below 1, or w > steps.
/// Source    torch.optim.lr_scheduler: StepLR, CosineAnnealingLR(T_max = T) and OneCycleLR(cycle_momentum = False), in closed
///           form; Loshchilov, Hutter: "SGDR", 2017; Smith, Topin: "Super-convergence", 2018.
/// Example   tests/train/schedule/schedule_test.cpp
double learning_rate_at(const ScheduleSpec& spec, double peak, std::int64_t steps, std::int64_t step);

/// The same of all steps, as the device reads it (kernels/step_state: the last entry goes on for ever); a single one where
/// it never changes.
///
/// Errors    InvalidArgument also if there are more than 16,777,216 steps to list.
std::vector<float> learning_rates(const ScheduleSpec& spec, double peak, std::int64_t steps);

}  // namespace gradring::train
