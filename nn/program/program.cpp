// SPDX-License-Identifier: Apache-2.0
#include "nn/program/program.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

/// Pointers to parameters in Weights, or to their gradients in Gradients.
template <class Tensors>
auto pointers(const Tensors& tensors, const std::vector<int>& parameters) {
  std::vector<decltype(tensors.parameter(0))> all;
  for (int index : parameters) all.push_back(tensors.parameter(index));
  return all;
}

void announce(StepObserver& observer, const std::vector<int>& parameters) {
  observer.weights_needed(parameters);
  observer.gradients_begin(parameters);
}

/// The last parameter of a layer is ready first.
void tell(StepObserver& observer, const std::vector<int>& parameters) {
  for (auto index = parameters.rbegin(); index != parameters.rend(); ++index) observer.gradient_ready(*index);
}

std::vector<StageBytes> bytes_of(const std::vector<PlannedStage>& stages) {
  std::vector<StageBytes> bytes;
  for (const PlannedStage& stage : stages)
    bytes.push_back(
        {.output = stage.output_bytes, .saved = stage.plan->saved_bytes(), .kept = stage.plan->kept_bytes()});
  return bytes;
}

/// Whether a later stage has already written a gradient of what the stage reads.
bool adds_dx(const PlannedStage& stage, std::size_t number, std::span<const std::size_t> last_readers) {
  return stage.x != kProgramInput && last_readers[stage.x] != number;
}

bool adds_dresidual(const PlannedStage& stage, std::size_t number, std::span<const std::size_t> last_readers) {
  const std::size_t read = stage.residual.value_or(kProgramInput);
  return read != kProgramInput && (read == stage.x || last_readers[read] != number);
}

std::vector<StageCost> costs_of(const ModelPlans& plans) {
  const std::vector<PlannedStage>& stages = plans.stages;
  std::vector<StageCost> costs;
  const std::vector<StageBytes> bytes = bytes_of(stages);
  for (std::size_t i = 0; i < stages.size(); ++i)
    costs.push_back({.bytes = bytes[i].padded(), .work = stages[i].forward_work, .kept_bytes = bytes[i].padded_kept()});
  std::size_t first_read = plans.head.x;  // by the stages after i
  for (std::size_t i = stages.size(); i-- > 0;) {
    costs[i].may_end = first_read >= i;
    first_read = std::min({first_read, stages[i].x, stages[i].residual.value_or(kProgramInput)});
  }
  return costs;
}

/// A gradient lives from the step that writes it first, that of the stage's last reader, to that of its own stage. Where
/// an earlier reader adds to it, the summand is in memory of its own: two for each stage, of dx and of dresidual.
Placement place_gradients(const ModelPlans& plans, std::span<const std::size_t> last_readers) {
  const std::size_t count = plans.stages.size();
  std::vector<Lifetime> blocks;
  for (std::size_t i = 0; i < count; ++i)
    blocks.push_back({.bytes = plans.stages[i].output_bytes, .first = count - last_readers[i], .last = count - i});
  for (std::size_t i = 0; i < count; ++i) {
    const PlannedStage& stage = plans.stages[i];
    const auto summand = [&](std::size_t read, bool adds) {
      const bool needed = adds && read != kProgramInput;
      blocks.push_back({.bytes = needed ? plans.stages[read].output_bytes : 0, .first = count - i, .last = count - i});
    };
    summand(stage.x, adds_dx(stage, i, last_readers));
    summand(stage.residual.value_or(kProgramInput), adds_dresidual(stage, i, last_readers));
  }
  return assign_offsets(blocks);
}

}  // namespace

Program::Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend,
                 const ProgramDevices& devices, kernels::DType dtype, const Checkpointing& checkpointing,
                 ReplicaStatistics* replicas)
    : max_batch_(max_batch), mode_(mode), dtype_(dtype), buffer_layout_(buffer_layout(model)) {
  check(max_batch > 0,
        [&] { return "the batch size of a program is " + std::to_string(max_batch) + ", expected 1 or more"; });
  const bool trains = mode == ProgramMode::training;
  check(trains || checkpointing.kind == Checkpointing::Kind::none, "checkpointing needs a training program");
  plans_ = plan_model(model, max_batch, dtype, trains, backend, replicas);
  segments_ = choose_segments(costs_of(plans_), checkpointing);
  last_readers_ = plans_.last_readers();
  const std::vector<StageBytes> bytes = bytes_of(plans_.stages);
  layout_ = trains ? lay_out_for_backward(bytes, segments_.ends) : lay_out_for_forward(bytes, last_readers_);

  activations_ = devices.activations.allocate(layout_.bytes);
  if (trains) {
    Placement placed = place_gradients(plans_, last_readers_);
    gradients_ = devices.activations.allocate(placed.bytes);
    gradient_offsets_ = std::move(placed.offsets);
  }
  logits_ = devices.activations.allocate(plans_.head.logits_bytes);
  workspace_ = devices.workspace.allocate(plans_.workspace_bytes);
}

void Program::enqueue_forward(kernels::Stream& stream, const Weights& weights, const Batch& batch,
                              StepObserver& observer) {
  check_type_of(weights);
  check(batch.samples > 0 && batch.samples <= max_batch_, [&] {
    return "a batch has " + std::to_string(batch.samples) + " samples, expected 1 to " + std::to_string(max_batch_);
  });
  batch_ = batch.samples;
  random_ = batch.random;
  input_ = batch.x;
  observer.before_forward();
  for (std::size_t i = 0; i < plans_.stages.size(); ++i) {
    observer.weights_needed(plans_.stages[i].parameters);
    enqueue_stage(stream, weights, i, false);
  }
}

std::vector<float*> Program::buffers_of(const Weights& weights, std::size_t stage) const {
  check(weights.buffers || plans_.stages[stage].buffers.empty(), "the weights have no buffers, but the model has some");
  std::vector<float*> all;
  for (const int index : plans_.stages[stage].buffers)
    all.push_back(weights.buffers + buffer_layout_.parameter(index).offset);
  return all;
}

void Program::enqueue_stage(kernels::Stream& stream, const Weights& weights, std::size_t stage, bool recomputed) {
  const auto parameters = pointers(weights, plans_.stages[stage].parameters);
  const std::vector<float*> buffers = buffers_of(weights, stage);
  plans_.stages[stage].plan->enqueue_forward(stream, {.batch = batch_,
                                                      .x = read(plans_.stages[stage].x),
                                                      .residual = residual_of(stage),
                                                      .y = output_of(stage),
                                                      .parameters = parameters,
                                                      .buffers = buffers,
                                                      .saved = saved_of(stage),
                                                      .kept = kept_of(stage),
                                                      .recomputed = recomputed,
                                                      .random = random_,
                                                      .workspace = workspace_.data()});
}

void Program::enqueue_loss(kernels::Stream& stream, const LossTarget& target) {
  check(mode_ == ProgramMode::evaluation && batch_ > 0,
        "enqueue_loss needs an evaluation program and a forward pass before it");
  plans_.head.plan->enqueue(stream, pass_of(target));
}

LossPass Program::pass_of(const LossTarget& target) const {
  return {.rows = batch_,
          .x = read(plans_.head.x),
          .labels = target.labels,
          .scale = target.scale,
          .loss_scale = target.loss_scale,
          .loss_sum = target.loss_sum,
          .correct = target.correct,
          .workspace = workspace_.data()};
}

void Program::enqueue_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                               const LossTarget& target, StepObserver& observer) {
  check(mode_ == ProgramMode::training && batch_ > 0,
        "enqueue_backward needs a training program and a forward pass before it");
  check_type_of(weights);
  walk_backward(observer,
                {.head = [&] { enqueue_head(stream, weights, gradients, target); },
                 .recompute = [&](std::size_t stage) { enqueue_stage(stream, weights, stage, true); },
                 .stage = [&](std::size_t stage) { enqueue_stage_backward(stream, weights, gradients, stage); }});
}

void Program::enqueue_empty_batch(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                  StepObserver& observer) {
  batch_ = 0;
  if (!input_) input_ = activations_.data();  // nothing of it is read
  const auto clear = [&](const std::vector<int>& parameters) {
    for (const int index : parameters)
      stream.enqueue_zero(gradients.parameter(index), gradients.layout.parameter(index).elements * sizeof(float));
  };
  stream.enqueue_zero(gradients.piggyback, gradients.layout.piggyback().elements * sizeof(float));
  observer.before_forward();
  for (std::size_t i = 0; i < plans_.stages.size(); ++i) {
    observer.weights_needed(plans_.stages[i].parameters);
    if (plans_.stages[i].plan->needs_replicas()) enqueue_stage(stream, weights, i, false);
  }
  walk_backward(observer, {.head = [&] { clear(plans_.head.parameters); },
                           .recompute = [](std::size_t) {},
                           .stage =
                               [&](std::size_t stage) {
                                 if (plans_.stages[stage].plan->needs_replicas())
                                   enqueue_stage_backward(stream, weights, gradients, stage);
                                 else
                                   clear(plans_.stages[stage].parameters);
                               }});
}

/// From the loss to the first stage, with recomputation; makes the observer's calls.
void Program::walk_backward(StepObserver& observer, const BackwardWork& work) const {
  observer.before_backward();
  announce(observer, plans_.head.parameters);
  work.head();
  tell(observer, plans_.head.parameters);
  const std::vector<std::size_t>& ends = segments_.ends;
  for (std::size_t segment = ends.size(); segment-- > 0;) {
    const std::size_t first = segment == 0 ? 0 : ends[segment - 1] + 1;
    for (std::size_t i = first; i < ends[segment] && segment + 1 < ends.size(); ++i) {  // the last segment still exists
      observer.weights_needed(plans_.stages[i].parameters);
      work.recompute(i);
    }
    for (std::size_t i = ends[segment] + 1; i-- > first;) {
      announce(observer, plans_.stages[i].parameters);
      work.stage(i);
      tell(observer, plans_.stages[i].parameters);
    }
  }
}

void Program::enqueue_stage_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                     std::size_t stage) {
  const PlannedStage& planned = plans_.stages[stage];
  const auto parameters = pointers(weights, planned.parameters);
  const auto dparameters = pointers(gradients, planned.parameters);
  const std::size_t residual = planned.residual.value_or(kProgramInput);
  const bool dx_is_summand = adds_dx(planned, stage, last_readers_);
  const bool dresidual_is_summand = adds_dresidual(planned, stage, last_readers_);
  const std::size_t summands = plans_.stages.size() + 2 * stage;
  std::byte* const dx = planned.x == kProgramInput ? nullptr : gradient_at(dx_is_summand ? summands : planned.x);
  std::byte* const dresidual =
      residual == kProgramInput ? nullptr : gradient_at(dresidual_is_summand ? summands + 1 : residual);
  planned.plan->enqueue_backward(stream, {.batch = batch_,
                                          .x = read(planned.x),
                                          .y = output_of(stage),
                                          .dy = gradient_at(stage),
                                          .dx = dx,
                                          .dresidual = dresidual,
                                          .parameters = parameters,
                                          .gradients = dparameters,
                                          .saved = saved_of(stage),
                                          .kept = kept_of(stage),
                                          .random = random_,
                                          .workspace = workspace_.data()});
  if (dx_is_summand) enqueue_sum(stream, planned.x, dx);
  if (dresidual_is_summand) enqueue_sum(stream, residual, dresidual);
}

/// Adds to the gradient of a stage's output.
void Program::enqueue_sum(kernels::Stream& stream, std::size_t stage, const std::byte* summand) {
  const std::size_t sample_bytes = plans_.stages[stage].output_bytes / static_cast<std::size_t>(max_batch_);
  plans_.sum->enqueue_forward(stream,
                              {.batch = batch_ * static_cast<std::int64_t>(sample_bytes / kernels::size_of(dtype_)),
                               .x = gradient_at(stage),
                               .residual = summand,
                               .y = gradient_at(stage),
                               .workspace = workspace_.data()});
}

void Program::enqueue_head(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                           const LossTarget& target) {
  const auto parameters = pointers(weights, plans_.head.parameters);
  const auto dparameters = pointers(gradients, plans_.head.parameters);
  LossPass pass = pass_of(target);
  pass.parameters = parameters;
  pass.logits = logits_.data();
  pass.dx = gradient_at(plans_.head.x);
  pass.gradients = dparameters;
  plans_.head.plan->enqueue(stream, pass);
}

const void* Program::logits() const {
  return logits_.size() > 0 ? logits_.data() : static_cast<const void*>(output_of(plans_.stages.size() - 1));
}

void Program::check_type_of(const Weights& weights) const {
  check(weights.dtype == dtype_, [&] {
    return "weights have type " + std::string(name_of(weights.dtype)) + ", expected " + std::string(name_of(dtype_));
  });
}

ProgramMemory Program::memory() const {
  return {.activations = activations_.size() + logits_.size(),
          .activation_gradients = gradients_.size(),
          .workspace = workspace_.size()};
}

std::vector<PlanDescription> Program::description() const {
  std::vector<PlanDescription> all;
  for (const PlannedStage& stage : plans_.stages) all.push_back({stage.layers, stage.plan->description()});
  all.push_back({plans_.head.layers, plans_.head.plan->description()});
  return all;
}

std::vector<std::vector<int>> Program::parameters_of_plans() const {
  std::vector<std::vector<int>> all;
  for (const PlannedStage& stage : plans_.stages) all.push_back(stage.parameters);
  all.push_back(plans_.head.parameters);
  return all;
}

std::vector<int> Program::ready_order(const Model& model) {
  std::vector<int> order(parameters_of(model).size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

ArenaLayout Program::buffer_layout(const Model& model) {
  const std::vector<Parameter> buffers = nn::buffers_of(model);
  std::vector<int> all(buffers.size());
  std::iota(all.begin(), all.end(), 0);
  return {buffers, {&all, 1}, 1};
}

}  // namespace gradring::nn
