// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/train_step.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

using kernels::DType;
using kernels::MemoryKind;
using kernels::TraceCategory;
using kernels::TraceScope;

/// Results that may await being taken: enough that the device rarely waits for the host.
constexpr std::size_t kSlots = TrainStep::kMostAhead + 1;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::size_t bytes_of_rates(const StepSpec& spec) {
  check(!spec.learning_rates.empty() && spec.groups > 0 && spec.learning_rates.size() % spec.groups == 0,
        "a step has no learning rate, or not as many for each parameter group");
  return spec.learning_rates.size() * sizeof(float);
}

}  // namespace

TrainStep::TrainStep(StepSpec spec, const StepParts& parts)
    : spec_(std::move(spec)),
      parts_(parts),
      correct_(parts.device.allocate(sizeof(std::int32_t))),
      state_(parts.device.allocate(sizeof(StepState))),
      counters_(parts.device.allocate(sizeof(Counters))),
      host_state_(parts.device.allocate(sizeof(StepState), MemoryKind::pinned)),
      host_rates_(parts.device.allocate(bytes_of_rates(spec_), MemoryKind::pinned)),
      rates_(parts.device.allocate(bytes_of_rates(spec_))),
      group_rates_(parts.device.allocate(spec_.groups * sizeof(float))),
      reports_(parts.device.allocate(kSlots * sizeof(Report), MemoryKind::pinned)),
      clock_(parts.ddp) {
  for (std::size_t i = 0; i < kSlots; ++i)
    slots_.push_back({.report = reports_.as<Report>() + i, .done = parts.device.make_event()});
  *host_state_.as<StepState>() = {.loss_scale = spec_.loss_scaling.first()};
  parts_.stream.enqueue_copy(state_.data(), host_state_.data(), sizeof(StepState));
  parts_.stream.enqueue_zero(counters_.data(), sizeof(Counters));
  std::ranges::copy(spec_.learning_rates, host_rates_.as<float>());
  parts_.stream.enqueue_copy(rates_.data(), host_rates_.data(), rates_.size());
  parts_.reducer.set_loss_scale(&device_state()->loss_scale);
}

std::size_t TrainStep::memory_bytes(const StepSpec& spec) {
  return sizeof(std::int32_t) + sizeof(StepState) + sizeof(Counters) +
         (spec.learning_rates.size() + spec.groups) * sizeof(float);
}

void TrainStep::enqueue_work(DeviceBatch& batch, const Shape& shape) {
  clock_.begin();
  shape.count > 0 ? enqueue_pass(batch, shape) : enqueue_empty_batch(shape);
  if (shape.pass.last) enqueue_update();
}

/// A rank without samples contributes zeros, and takes part in all collectives.
void TrainStep::enqueue_empty_batch(const Shape& shape) {
  const TraceScope traced(trace_, TraceCategory::backward, "backward of an empty batch");
  nn::ObserverPair observer(parts_.weights.observer(), parts_.reducer);
  parts_.program.enqueue_empty_batch(parts_.stream, parts_.weights.view(), parts_.reducer.begin(shape.pass), observer);
  parts_.reducer.enqueue_end();
  clock_.end(phases_.backward);
}

void TrainStep::enqueue_pass(DeviceBatch& batch, const Shape& shape) {
  const nn::Gradients& gradients = parts_.reducer.begin(shape.pass);
  nn::ObserverPair observer(parts_.weights.observer(), parts_.reducer);
  enqueue_forward(batch, shape, observer);
  enqueue_backward(batch, shape, gradients, observer);
}

void TrainStep::enqueue_forward(DeviceBatch& batch, const Shape& shape, nn::StepObserver& observer) {
  const TraceScope traced(trace_, TraceCategory::forward, "forward");
  batch.enqueue_preparation(parts_.stream, shape.count);
  parts_.program.enqueue_forward(parts_.stream, parts_.weights.view(),
                                 {.x = batch.images(),
                                  .samples = shape.count,
                                  .random = random_key(shape.first, shape.stride),
                                  .x_dtype = batch.images_dtype()},
                                 observer);
  clock_.end(phases_.forward);
}

void TrainStep::enqueue_backward(DeviceBatch& batch, const Shape& shape, const nn::Gradients& gradients,
                                 nn::StepObserver& observer) {
  const TraceScope traced(trace_, TraceCategory::backward, "backward");
  parts_.program.enqueue_backward(parts_.stream, parts_.weights.view(), gradients,
                                  {.labels = batch.labels(),
                                   .soft = {.labels_b = batch.labels_b(),
                                            .weights_b = batch.weights_b(),
                                            .label_smoothing = static_cast<float>(spec_.label_smoothing)},
                                   .scale = 1.0f / static_cast<float>(shape.divisor),
                                   .loss_scale = &device_state()->loss_scale,
                                   .loss_sum = gradients.piggyback,
                                   .correct = correct_.as<std::int32_t>(),
                                   .arrivals = &counters_.as<Counters>()->arrivals},
                                  observer);
  parts_.reducer.enqueue_end();
  clock_.end(phases_.backward);
}

void TrainStep::enqueue_update() {
  const TraceScope traced(trace_, TraceCategory::optimizer, "optimizer");
  kernels::Stream& stream = parts_.stream;
  auto* const counters = counters_.as<Counters>();
  parts_.check.enqueue(stream,
                       {.found = device_state(),
                        .arrivals = &counters->arrivals,
                        .prepare = {.state = device_state(),
                                    .learning_rates = rates_.as<float>(),
                                    .count = static_cast<std::int32_t>(spec_.learning_rates.size() / spec_.groups),
                                    .sum_of_squares = parts_.check.sum_of_squares(),
                                    .most_norm = spec_.clip_norm > 0 ? static_cast<float>(spec_.clip_norm) : kInfinity,
                                    .groups = static_cast<std::int32_t>(spec_.groups),
                                    .rates = group_rates_.as<float>()}});
  parts_.optimizer.enqueue_step(stream, parts_.slices, device_state(), group_rates_.as<float>(),
                                {.advance = {.state = device_state(),
                                             .policy = spec_.loss_scaling.policy,
                                             .dynamic = spec_.loss_scaling.dynamic,
                                             .reports = {.ring = reports_.as<Report>(),
                                                         .count = kSlots,
                                                         .written = &counters->reports,
                                                         .loss_sum = parts_.reducer.loss_sum()}},
                                 .arrivals = &counters->arrivals});
  parts_.ddp.enqueue_in_line([this](auto& line) { parts_.weights.enqueue_gather(line); });
  clock_.end(phases_.optimizer);
  parts_.ddp.enqueue_end_of_step();
}

std::unique_ptr<kernels::Recording> TrainStep::record(DeviceBatch& batch, const Shape& shape) {
  try {
    return parts_.device.record(parts_.stream, [this, &batch, shape] { enqueue_work(batch, shape); });
  } catch (const DeviceError& error) {
    throw DeviceError(std::string("a step could not be captured into a CUDA graph: ") + error.what() +
                      "; --cuda-graph off runs every step without one");
  }
}

void TrainStep::enqueue_recorded(DeviceBatch& batch, const Shape& shape) {
  if (seen_.insert(shape).second) return enqueue_work(batch, shape);
  auto& recording = recordings_[shape];
  if (!recording) recording = record(batch, shape);
  parts_.ddp.replay([this, &recording] { recording->enqueue(parts_.stream); });
}

/// After a step: its report is in the next slot once the stream has reached this point.
void TrainStep::mark_report(std::int64_t global_samples) {
  Slot& slot = slots_[next_slot_++ % kSlots];
  parts_.stream.record(*slot.done);
  slot.global_samples = global_samples;
  const StepPhases phases = std::exchange(phases_, {});
  if (parts_.device.id().kind == kernels::DeviceKind::cpu) slot.phases = phases;
  in_flight_.push_back(&slot);
}

void TrainStep::enqueue(const Input& input) {
  check(!full(), "too many steps are enqueued: take results of earlier steps first");
  if (input.count > 0) input.batch.enqueue_copies(parts_.stream);
  pass_ = input.pass.first ? 0 : pass_ + 1;
  const Shape shape{.count = input.count,
                    .divisor = input.divisor > 0 ? input.divisor : input.global_samples,
                    .global_samples = input.global_samples,
                    .number = pass_,
                    .pass = input.pass,
                    .first = input.first,
                    .stride = input.stride};
  spec_.recorded ? enqueue_recorded(input.batch, shape) : enqueue_work(input.batch, shape);
  if (input.pass.last) mark_report(input.global_samples);
}

bool TrainStep::full() const { return in_flight_.size() == kSlots; }

StepResult TrainStep::take_oldest() {
  const Slot& slot = *in_flight_.front();
  in_flight_.pop_front();
  parts_.ddp.throw_if_failed();  // otherwise the result is undefined
  const StepState& made = slot.report->state;
  return {.loss = static_cast<double>(slot.report->loss_sum) / static_cast<double>(slot.global_samples),
          .loss_scale = made.loss_scale,
          .gradient_norm = made.gradient_norm,
          .learning_rate = made.learning_rate,
          .applied_steps = made.applied_steps,
          .skipped = made.non_finite != 0,
          .non_finite = parts_.check.parameter_at(made.first_non_finite),
          .underflow = parts_.check.share_of(made.tiny_gradients),
          .phases = slot.phases};
}

std::optional<StepResult> TrainStep::poll() {
  if (in_flight_.empty() || !in_flight_.front()->done->reached()) return std::nullopt;
  return take_oldest();
}

StepResult TrainStep::wait(Deadline deadline) {
  check(!in_flight_.empty(), "no step is enqueued to wait for");
  kernels::wait(*in_flight_.front()->done, deadline);
  return take_oldest();
}

TrainStep::StepState TrainStep::state(Deadline deadline) {
  check(idle(), "the step state was read while steps were enqueued: take their results first");
  parts_.stream.enqueue_copy(host_state_.data(), state_.data(), sizeof(StepState));
  parts_.stream.synchronize(deadline);
  return *host_state_.as<StepState>();
}

void TrainStep::resume_loss_scale(StepState& state, bool scaled) const {
  if (scaled && scales_loss()) return;
  state.loss_scale = spec_.loss_scaling.first();
  state.growth_tracker = 0;
}

void TrainStep::set_state(const StepState& state, Deadline deadline) {
  check(idle(), "the step state was set while steps were enqueued: take their results first");
  *host_state_.as<StepState>() = state;
  parts_.stream.enqueue_copy(state_.data(), host_state_.data(), sizeof(StepState));
  parts_.stream.synchronize(deadline);
}

StepResult TrainStep::run(const Input& input, Deadline deadline) {
  enqueue(input);
  return wait(deadline);
}

}  // namespace gradring::train
