// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gradring::train {

/// The user's choice of a learning rate schedule.
struct ScheduleSpec {
  std::string name = "constant";  ///< constant, step, cosine, one-cycle
  std::int64_t warmup_steps = 0;  ///< linear rise to the peak; one-cycle has its own
  std::int64_t step_size = 0;     ///< step: applied steps between two decays
  double gamma = 0.1;             ///< step: factor of each decay
  double least = 0;               ///< cosine: the rate at the end
};

/// The learning rate of step `step` of `steps`, counted from 0, skipped steps excluded; w = warmup_steps, t = step - w,
/// T = steps - w:
///   step < w:    peak * (step + 1) / w
///   constant:    peak
///   step:        peak * gamma ^ floor(t / step_size)
///   cosine:      least + (peak - least) * (1 + cos(pi t / T)) / 2
///   one-cycle:   cosine from peak / 25 to peak over the first 30 % of the steps, then to peak / 250,000
///
/// Errors    InvalidArgument for another name, a step_size below 1, or w > steps.
/// Source    torch.optim.lr_scheduler: StepLR, CosineAnnealingLR(T_max = T) and OneCycleLR(cycle_momentum = False), in
///           closed form; Loshchilov, Hutter: "SGDR", 2017; Smith, Topin: "Super-convergence", 2018.
/// Example   tests/train/optim/schedule_test.cpp
double learning_rate_at(const ScheduleSpec& spec, double peak, std::int64_t steps, std::int64_t step);

/// The learning rates of all steps, as the device reads them (kernels/step_state: past the end the last entry holds); a
/// single entry where the rate is constant.
///
/// Errors    InvalidArgument also for more than 16,777,216 steps.
std::vector<float> learning_rates(const ScheduleSpec& spec, double peak, std::int64_t steps);

}  // namespace gradring::train
