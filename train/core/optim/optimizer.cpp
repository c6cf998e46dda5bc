// SPDX-License-Identifier: Apache-2.0
#include "train/core/optim/optimizer.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"

namespace gradring::train {
namespace {

using kernels::step_state::StepState;

/// One float of state per weight, zero at the start.
kernels::Buffer make_state(kernels::Device& device, std::size_t elements) {
  kernels::Buffer state = device.allocate(elements * sizeof(float));
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  stream->enqueue_zero(state.data(), state.size());
  stream->synchronize(Deadline::after(std::chrono::minutes(1)));
  return state;
}

template <class Hyper>
Hyper hyper_for(const UpdateSlice& slice, Hyper hyper) {
  if (!slice.decays) hyper.weight_decay = 0;
  return hyper;
}

class Adam final : public Optimizer {
 public:
  Adam(const kernels::adam::Hyper& hyper, const kernels::adam::Variant& kernel, kernels::Device& device,
       std::size_t elements)
      : hyper_(hyper), kernel_(kernel), m_(make_state(device, elements)), v_(make_state(device, elements)) {}

  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices, const StepState* state) override {
    for (const UpdateSlice& slice : slices)
      kernel_.run(stream, {.elements = slice.elements,
                           .weights = slice.weights,
                           .gradients = slice.gradients,
                           .m = m_.as<float>() + slice.state_offset,
                           .v = v_.as<float>() + slice.state_offset,
                           .state = state,
                           .hyper = hyper_for(slice, hyper_),
                           .copy_dtype = slice.copy.dtype,
                           .copy = slice.copy.data});
  }
  std::vector<OptimizerState> states() override {
    return {{"exp_avg", m_.as<float>()}, {"exp_avg_sq", v_.as<float>()}};
  }
  std::size_t bytes() const override { return m_.size() + v_.size(); }

 private:
  kernels::adam::Hyper hyper_;
  kernels::adam::Variant kernel_;
  kernels::Buffer m_;
  kernels::Buffer v_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const kernels::sgd::Hyper& hyper, const kernels::sgd::Variant& kernel, kernels::Device& device,
      std::size_t elements)
      : hyper_(hyper), kernel_(kernel) {
    if (hyper.momentum != 0) momentum_ = make_state(device, elements);
  }

  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices, const StepState* state) override {
    for (const UpdateSlice& slice : slices)
      kernel_.run(stream,
                  {.elements = slice.elements,
                   .weights = slice.weights,
                   .gradients = slice.gradients,
                   .momentum_buffer = momentum_.size() > 0 ? momentum_.as<float>() + slice.state_offset : nullptr,
                   .state = state,
                   .hyper = hyper_for(slice, hyper_),
                   .copy_dtype = slice.copy.dtype,
                   .copy = slice.copy.data});
  }
  std::vector<OptimizerState> states() override {
    if (momentum_.size() == 0) return {};
    return {{"momentum_buffer", momentum_.as<float>()}};
  }
  std::size_t bytes() const override { return momentum_.size(); }

 private:
  kernels::sgd::Hyper hyper_;
  kernels::sgd::Variant kernel_;
  kernels::Buffer momentum_;  // empty without momentum
};

/// Averages the weights that another optimizer updates, slice by slice, so the average is sharded as they are. It
/// begins as the first weights; the first applied step sets it to the weights after that step, as PyTorch's
/// AveragedModel does.
class Ema final : public Optimizer {
 public:
  Ema(std::unique_ptr<Optimizer> inner, double decay, const kernels::ema::Variant& kernel, kernels::Device& device,
      std::size_t elements)
      : inner_(std::move(inner)), decay_(decay), kernel_(kernel), average_(make_state(device, elements)) {}

  void enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) override {
    inner_->enqueue_begin(stream, slices);
    for (const UpdateSlice& slice : slices)
      stream.enqueue_copy(average_.as<float>() + slice.state_offset, slice.weights, slice.elements * sizeof(float));
  }
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices, const StepState* state) override {
    inner_->enqueue_step(stream, slices, state);
    for (const UpdateSlice& slice : slices)
      kernel_.run(stream, {.elements = slice.elements,
                           .weights = slice.weights,
                           .average = average_.as<float>() + slice.state_offset,
                           .state = state,
                           .decay = decay_});
  }
  std::vector<OptimizerState> states() override {
    std::vector<OptimizerState> states = inner_->states();
    states.push_back({std::string(kEmaState), average_.as<float>()});
    return states;
  }
  std::size_t bytes() const override { return inner_->bytes() + average_.size(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  double decay_;
  kernels::ema::Variant kernel_;
  kernels::Buffer average_;
};

std::unique_ptr<Optimizer> make_plain(const OptimizerSpec& spec, const kernels::KernelSet& kernels,
                                      kernels::Device& device, std::size_t elements) {
  const auto pick = [&device](const auto& table) { return kernels::pick_variant(table, device, kernels::DType::f32); };
  if (is_adam(spec.kind)) {
    const kernels::adam::Hyper hyper{.beta1 = spec.betas.first,
                                     .beta2 = spec.betas.second,
                                     .epsilon = spec.epsilon,
                                     .weight_decay = spec.weight_decay,
                                     .decoupled = spec.kind == OptimizerKind::adamw};
    return std::make_unique<Adam>(hyper, pick(kernels.adam), device, elements);
  }
  const kernels::sgd::Hyper hyper{.momentum = spec.momentum,
                                  .dampening = spec.dampening,
                                  .weight_decay = spec.weight_decay,
                                  .nesterov = spec.nesterov,
                                  .decoupled = spec.kind == OptimizerKind::sgdw};
  return std::make_unique<Sgd>(hyper, pick(kernels.sgd), device, elements);
}

constexpr std::int64_t kMostListed = 1 << 24;
// OneCycleLR's defaults.
constexpr double kOneCycleRise = 0.3;
constexpr double kOneCycleFirst = 25;
constexpr double kOneCycleLast = 1e4;

/// Goes from `from` at part 0 to `to` at part 1.
double cosine(double from, double to, double part) {
  return to + (from - to) / 2 * (1 + std::cos(std::numbers::pi * part));
}

/// The same, with equal factors for equal parts.
double exponential(double to, double from, double part) {
  check(from > 0, fmt::format("schedule exponential begins at {}, expected a rate above 0", from));
  return part > 0 ? from * std::pow(to / from, part) : from;
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

std::unique_ptr<Optimizer> make_optimizer(const OptimizerSpec& spec, const kernels::KernelSet& kernels,
                                          kernels::Device& device, std::size_t elements) {
  auto optimizer = make_plain(spec, kernels, device, elements);
  if (spec.ema == 0) return optimizer;
  const auto kernel = kernels::pick_variant(kernels.ema, device, kernels::DType::f32);
  return std::make_unique<Ema>(std::move(optimizer), spec.ema, kernel, device, elements);
}

double learning_rate_at(const ScheduleSpec& spec, double peak, std::int64_t steps, std::int64_t step) {
  check_warmup(spec, steps);
  if (step < spec.warmup_steps) return peak * static_cast<double>(step + 1) / static_cast<double>(spec.warmup_steps);
  const std::int64_t since = step - spec.warmup_steps;
  const auto part_of = static_cast<double>(steps - spec.warmup_steps);
  switch (spec.kind) {
    case ScheduleKind::constant: return peak;
    case ScheduleKind::exponential: return exponential(peak, spec.least, static_cast<double>(since) / (part_of - 1));
    case ScheduleKind::linear: return std::lerp(peak, spec.least, static_cast<double>(since) / part_of);
    case ScheduleKind::cosine: return cosine(peak, spec.least, static_cast<double>(since) / part_of);
    case ScheduleKind::one_cycle: return one_cycle(peak, part_of, static_cast<double>(since));
    case ScheduleKind::step: break;
  }
  check(spec.step_size >= 1,
        fmt::format("schedule step has step size {}, expected 1 or more: set --schedule-step-size", spec.step_size));
  const std::int64_t decays = since / spec.step_size;
  return peak * std::pow(spec.gamma, static_cast<double>(decays));
}

std::vector<float> learning_rates(const ScheduleSpec& spec, double peak, std::int64_t steps) {
  check_warmup(spec, steps);
  const std::int64_t count =
      spec.kind == ScheduleKind::constant && spec.warmup_steps < steps ? spec.warmup_steps + 1 : steps;
  check(count >= 1 && count <= kMostListed,
        fmt::format("schedule has {} steps, expected at most {}: lower --steps or --epochs", count, kMostListed));
  std::vector<float> rates(static_cast<std::size_t>(count));
  for (std::int64_t step = 0; step < count; ++step)
    rates[static_cast<std::size_t>(step)] = static_cast<float>(learning_rate_at(spec, peak, steps, step));
  return rates;
}

}  // namespace gradring::train
