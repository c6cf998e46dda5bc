// SPDX-License-Identifier: Apache-2.0
#include "train/optim/schedule.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "kernels/runtime/error.h"

namespace gradring::train {
namespace {

constexpr std::int64_t kMostListed = 1 << 24;
// OneCycleLR's defaults.
constexpr double kOneCycleRise = 0.3;
constexpr double kOneCycleFirst = 25;
constexpr double kOneCycleLast = 1e4;

/// Goes from `from` at part 0 to `to` at part 1.
double cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

double one_cycle(double peak, double steps, double step) {
  const double first = peak / kOneCycleFirst;
  const double top = kOneCycleRise * steps - 1;  // the step at the peak, as PyTorch counts: it may lie between two
  if (step <= top) return cosine(first, peak, top > 0 ? step / top : 1);
  return cosine(peak, first / kOneCycleLast, (step - top) / (steps - 1 - top));
}

void check_warmup(const ScheduleSpec& spec, std::int64_t steps) {
  check(spec.warmup_steps <= steps,
        fmt::format("warm-up of {} steps exceeds the {} steps of the training: shorten it, or train longer",
                    spec.warmup_steps, steps));
}

}  // namespace

double learning_rate_at(const ScheduleSpec& spec, double peak, std::int64_t steps, std::int64_t step) {
  check_warmup(spec, steps);
  if (step < spec.warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(spec.warmup_steps);
  const std::int64_t since = step - spec.warmup_steps;
  const auto part_of = static_cast<double>(steps - spec.warmup_steps);
  if (spec.name == "constant") return peak;
  if (spec.name == "cosine") return cosine(peak, spec.least, static_cast<double>(since) / part_of);
  if (spec.name == "one-cycle") return one_cycle(peak, part_of, static_cast<double>(since));
  check(spec.name == "step", "schedule '" + spec.name + "' is unknown: expected constant, step, cosine or one-cycle");
  check(spec.step_size >= 1, "schedule step has a step size below 1: set --schedule-step-size");
  const std::int64_t decays = since / spec.step_size;
  return peak * std::pow(spec.gamma, static_cast<double>(decays));
}

std::vector<float> learning_rates(const ScheduleSpec& spec, double peak, std::int64_t steps) {
  check_warmup(spec, steps);
  const std::int64_t count = spec.name == "constant" && spec.warmup_steps < steps ? spec.warmup_steps + 1 : steps;
  check(count >= 1 && count <= kMostListed,
        fmt::format("schedule has {} steps, expected at most {}: lower --steps or --epochs", count, kMostListed));
  std::vector<float> rates(static_cast<std::size_t>(count));
  for (std::int64_t step = 0; step < count; ++step)
    rates[static_cast<std::size_t>(step)] = static_cast<float>(learning_rate_at(spec, peak, steps, step));
  return rates;
}

}  // namespace gradring::train
