// SPDX-License-Identifier: Apache-2.0
#include "train/core/optim/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include "kernels/base/error.h"
#include "kernels/lib/variant.h"
#include "train/core/optim/muon.h"

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

bool is_muon(const ParameterGroup& group) { return group.options.kind == OptimizerKind::muon; }
bool is_adam(const ParameterGroup& group) { return !group.frozen && train::is_adam(group.options.kind); }
bool has_momentum(const ParameterGroup& group) { return !group.frozen && group.options.momentum != 0; }

/// Updates each slice by the kernel of its parameter group. Adam's first moment and the momentum of SGD share memory.
class GroupedOptimizer final : public Optimizer {
 public:
  GroupedOptimizer(std::span<const ParameterGroup> groups, const MuonParts& muon, const kernels::KernelSet& kernels,
                   kernels::Device& device, std::size_t elements)
      : groups_(groups.begin(), groups.end()),
        adam_(kernels::pick_variant(kernels.adam, device, kernels::DType::f32)),
        sgd_(kernels::pick_variant(kernels.sgd, device, kernels::DType::f32)),
        step_state_(kernels::pick_variant(kernels.step_state, device, kernels::DType::f32)) {
    const bool any_adam = std::ranges::any_of(groups_, [](const ParameterGroup& group) { return is_adam(group); });
    if (any_adam || std::ranges::any_of(groups_, has_momentum)) first_ = make_state(device, elements);
    if (any_adam) second_ = make_state(device, elements);
    if (!muon.matrices.empty()) muon_.emplace(muon, kernels, device);
  }

  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices, const StepState* state,
                    const float* learning_rates, const kernels::StepEnd& end) override {
    const UpdateSlice* const last = muon_ ? nullptr : last_update(slices);
    for (const UpdateSlice& slice : slices) {
      const ParameterGroup& group = groups_[static_cast<std::size_t>(slice.group)];
      if (!has_kernel(group)) continue;
      const kernels::StepEnd end_of_slice = &slice == last ? end : kernels::StepEnd{};
      const float* const rate = learning_rates + slice.group;
      is_adam(group) ? enqueue_adam(stream, slice, {state, rate, end_of_slice})
                     : enqueue_sgd(stream, slice, {state, rate, end_of_slice});
    }
    if (muon_) muon_->enqueue_step(stream, slices, groups_, first_.as<float>(), state, learning_rates);
    if (!last && end.advance.state) step_state_.advance(stream, end.advance);
  }
  std::vector<OptimizerState> states() override {
    std::vector<OptimizerState> states;
    if (first_.size() > 0)
      states.push_back({names([](const ParameterGroup& group) {
                          return is_adam(group) ? "exp_avg" : has_momentum(group) ? "momentum_buffer" : "";
                        }),
                        first_.as<float>()});
    if (second_.size() > 0)
      states.push_back(
          {names([](const ParameterGroup& group) { return is_adam(group) ? "exp_avg_sq" : ""; }), second_.as<float>()});
    return states;
  }
  std::size_t bytes() const override { return first_.size() + second_.size() + (muon_ ? muon_->bytes() : 0); }

 private:
  std::vector<std::string> names(const char* (*name_of)(const ParameterGroup&)) const {
    std::vector<std::string> all;
    for (const ParameterGroup& group : groups_) all.emplace_back(name_of(group));
    return all;
  }
  const OptimizerSpec& options(const UpdateSlice& slice) const {
    return groups_[static_cast<std::size_t>(slice.group)].options;
  }
  /// What updates of a step have in common.
  struct Update {
    const StepState* state;
    const float* rate;
    kernels::StepEnd end;
  };
  static bool has_kernel(const ParameterGroup& group) { return !group.frozen && !is_muon(group); }
  const UpdateSlice* last_update(std::span<const UpdateSlice> slices) const {
    const UpdateSlice* last = nullptr;
    for (const UpdateSlice& slice : slices)
      if (has_kernel(groups_[static_cast<std::size_t>(slice.group)])) last = &slice;
    return last;
  }
  void enqueue_adam(kernels::Stream& stream, const UpdateSlice& slice, const Update& update) {
    const OptimizerSpec& spec = options(slice);
    adam_.run(stream, {.elements = slice.elements,
                       .weights = slice.weights,
                       .gradients = slice.gradients,
                       .m = first_.as<float>() + slice.state_offset,
                       .v = second_.as<float>() + slice.state_offset,
                       .state = update.state,
                       .learning_rate = update.rate,
                       .hyper = {.beta1 = spec.betas.first,
                                 .beta2 = spec.betas.second,
                                 .epsilon = spec.epsilon,
                                 .weight_decay = spec.weight_decay,
                                 .decoupled = spec.kind == OptimizerKind::adamw},
                       .copy_dtype = slice.copy.dtype,
                       .copy = slice.copy.data,
                       .end = update.end});
  }
  void enqueue_sgd(kernels::Stream& stream, const UpdateSlice& slice, const Update& update) {
    const OptimizerSpec& spec = options(slice);
    sgd_.run(stream, {.elements = slice.elements,
                      .weights = slice.weights,
                      .gradients = slice.gradients,
                      .momentum_buffer = spec.momentum != 0 ? first_.as<float>() + slice.state_offset : nullptr,
                      .state = update.state,
                      .learning_rate = update.rate,
                      .hyper = {.momentum = spec.momentum,
                                .dampening = spec.dampening,
                                .weight_decay = spec.weight_decay,
                                .nesterov = spec.nesterov,
                                .decoupled = spec.kind == OptimizerKind::sgdw},
                      .copy_dtype = slice.copy.dtype,
                      .copy = slice.copy.data,
                      .end = update.end});
  }

  std::vector<ParameterGroup> groups_;
  kernels::adam::Variant adam_;
  kernels::sgd::Variant sgd_;
  kernels::step_state::Variant step_state_;
  kernels::Buffer first_;   // exp_avg or momentum_buffer
  kernels::Buffer second_;  // exp_avg_sq
  std::optional<Muon> muon_;
};

struct EmaSpec {
  double decay = 0;
  std::size_t groups = 0;  // parameter groups
};

/// Averages the weights that another optimizer updates, slice by slice, so the average is sharded as they are. It
/// begins as the first weights; the first applied step sets it to the weights after that step, as PyTorch's
/// AveragedModel does.
class Ema final : public Optimizer {
 public:
  Ema(std::unique_ptr<Optimizer> inner, const EmaSpec& spec, const kernels::KernelSet& kernels, kernels::Device& device,
      std::size_t elements)
      : inner_(std::move(inner)),
        spec_(spec),
        kernel_(kernels::pick_variant(kernels.ema, device, kernels::DType::f32)),
        step_state_(kernels::pick_variant(kernels.step_state, device, kernels::DType::f32)),
        average_(make_state(device, elements)) {}

  void enqueue_begin(kernels::Stream& stream, std::span<const UpdateSlice> slices) override {
    inner_->enqueue_begin(stream, slices);
    for (const UpdateSlice& slice : slices)
      stream.enqueue_copy(average_.as<float>() + slice.state_offset, slice.weights, slice.elements * sizeof(float));
  }
  void enqueue_step(kernels::Stream& stream, std::span<const UpdateSlice> slices, const StepState* state,
                    const float* learning_rates, const kernels::StepEnd& end) override {
    inner_->enqueue_step(stream, slices, state, learning_rates, {});
    for (const UpdateSlice& slice : slices)
      kernel_.run(stream, {.elements = slice.elements,
                           .weights = slice.weights,
                           .average = average_.as<float>() + slice.state_offset,
                           .state = state,
                           .decay = spec_.decay});
    if (end.advance.state) step_state_.advance(stream, end.advance);
  }
  std::vector<OptimizerState> states() override {
    std::vector<OptimizerState> states = inner_->states();
    states.push_back({std::vector(spec_.groups, std::string(kEmaState)), average_.as<float>()});
    return states;
  }
  std::size_t bytes() const override { return inner_->bytes() + average_.size(); }

 private:
  std::unique_ptr<Optimizer> inner_;
  EmaSpec spec_;
  kernels::ema::Variant kernel_;
  kernels::step_state::Variant step_state_;
  kernels::Buffer average_;
};

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
  if (to == 0) return 0;
  check(from > 0, fmt::format("schedule exponential begins at {}, expected a rate above 0", from));
  return part > 0 ? from * std::pow(to / from, part) : from;
}

double one_cycle(double peak, double steps, double step) {
  const double first = peak / kOneCycleFirst;
  const double top = kOneCycleRise * steps - 1;  // the step at the peak, as PyTorch counts: it may lie between two
  if (step <= top) return cosine(first, peak, top > 0 ? step / top : 1);
  return cosine(peak, first / kOneCycleLast, (step - top) / (steps - 1 - top));
}

/// The schedule of a group with a peak of its own. In a range test the ratio of its rates to the run's is constant.
ScheduleSpec schedule_of(ScheduleSpec spec, double peak, double own) {
  if (spec.kind == ScheduleKind::exponential && own != peak) spec.least *= own / peak;
  return spec;
}

void check_listed(std::int64_t steps) {
  check(steps >= 1 && steps <= kMostListed,
        fmt::format("schedule has {} steps, expected at most {}: lower --steps or --epochs", steps, kMostListed));
}

void check_warmup(const ScheduleSpec& spec, std::int64_t steps) {
  check(spec.warmup_steps <= steps,
        fmt::format("warm-up of {} steps exceeds the {} steps of the training: shorten it, or train longer",
                    spec.warmup_steps, steps));
}

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(std::span<const ParameterGroup> groups, double ema, const MuonParts& muon,
                                          const kernels::KernelSet& kernels, kernels::Device& device,
                                          std::size_t elements) {
  auto optimizer = std::make_unique<GroupedOptimizer>(groups, muon, kernels, device, elements);
  if (ema == 0) return optimizer;
  return std::make_unique<Ema>(std::move(optimizer), EmaSpec{ema, groups.size()}, kernels, device, elements);
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
  check_listed(count);
  std::vector<float> rates(static_cast<std::size_t>(count));
  for (std::int64_t step = 0; step < count; ++step)
    rates[static_cast<std::size_t>(step)] = static_cast<float>(learning_rate_at(spec, peak, steps, step));
  return rates;
}

std::int64_t steps_of(const ParameterGroup& group, const TrainingSteps& steps) {
  if (group.epochs == 0 || group.frozen) return steps.total;
  const double trained = std::round(group.epochs * static_cast<double>(steps.of_epoch));
  return static_cast<std::int64_t>(std::clamp(trained, 1.0, static_cast<double>(steps.total)));
}

double learning_rate_at(const ParameterGroup& group, const ScheduleSpec& spec, double peak, const TrainingSteps& steps,
                        std::int64_t step) {
  const std::int64_t trained = steps_of(group, steps);
  const double own = group.learning_rate.value_or(peak);
  return step < trained ? learning_rate_at(schedule_of(spec, peak, own), own, trained, step) : 0;
}

std::vector<float> learning_rates(std::span<const ParameterGroup> groups, const ScheduleSpec& spec, double peak,
                                  const TrainingSteps& steps) {
  std::vector<std::vector<float>> tables;
  std::size_t count = 1;
  for (const ParameterGroup& group : groups) {
    const std::int64_t trained = steps_of(group, steps);
    const double own = group.learning_rate.value_or(peak);
    auto& table = tables.emplace_back(learning_rates(schedule_of(spec, peak, own), own, trained));
    if (trained < steps.total) {
      check_listed(trained);
      table.resize(static_cast<std::size_t>(trained), table.back());
      table.push_back(0);
    }
    count = std::max(count, table.size());
  }
  std::vector<float> all;
  for (std::vector<float>& table : tables) {
    table.resize(count, table.back());  // the last rate holds
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

}  // namespace gradring::train
