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

/// The gradients of a plan's parameters; null for frozen ones.
std::vector<float*> gradient_pointers(const Gradients& gradients, const PlannedStage& stage) {
  std::vector<float*> all;
  for (const int index : stage.parameters)
    all.push_back(std::ranges::count(stage.trained, index) > 0 ? gradients.parameter(index) : nullptr);
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

}  // namespace

Program::Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend,
                 const ProgramDevices& devices, kernels::DType dtype, const Checkpointing& checkpointing,
                 ReplicaStatistics* replicas, std::size_t most_partial_sum_bytes)
    : max_batch_(max_batch),
      shards_{.size = max_batch, .count = replicas ? replicas->shards() : 1},
      mode_(mode),
      dtype_(dtype),
      buffer_layout_(buffer_layout(model)) {
  check(max_batch > 0,
        [&] { return "the batch size of a program is " + std::to_string(max_batch) + ", expected 1 or more"; });
  const bool trains = mode == ProgramMode::training;
  check(trains || checkpointing.kind == Checkpointing::Kind::none, "checkpointing needs a training program");
  check(max_batch % shards_.count == 0, [&] {
    return "a batch of " + std::to_string(max_batch) + " samples cannot be cut into " + std::to_string(shards_.count) +
           " equal shards";
  });
  shards_.size = max_batch / shards_.count;
  plans_ = plan_model(model, shards_.size, dtype, trains, backend, replicas);
  const std::vector<StageBytes> bytes = bytes_of(plans_.stages, shards_);
  first_of_backward_ = plans_.first_of_backward();
  segments_ = segments_of(plans_, bytes, first_of_backward_, checkpointing);
  last_readers_ = plans_.last_readers();
  layout_ = trains ? lay_out_for_training(bytes, last_readers_, segments_.ends, first_of_backward_)
                   : lay_out_for_forward(bytes, last_readers_);

  activations_ = devices.activations.allocate(layout_.bytes);
  if (trains) {
    Placement placed = place_gradients(plans_, bytes, last_readers_);
    gradients_ = devices.activations.allocate(placed.bytes);
    gradient_offsets_ = std::move(placed.offsets);
  }
  logits_ = devices.activations.allocate(plans_.head.logits_bytes > 0 ? shards_.bytes(plans_.head.logits_bytes) : 0);
  input_bytes_ =
      static_cast<std::size_t>(activations_of(model, shards_.size).front().shape.elements()) * kernels::size_of(dtype);
  cut_input_ = devices.activations.allocate(shards_.count > 1 ? shards_.bytes(input_bytes_) : 0);
  workspace_ = devices.workspace.allocate(plans_.workspace_bytes);
  if (trains && shards_.count == 1) plans_.assign_partial_sums(most_partial_sum_bytes);
  partial_sums_ = devices.workspace.allocate(plans_.partial_sum_bytes);
  if (plans_.partial_sum_bytes > 0) branch_.emplace(devices.workspace);
}

void Program::enqueue_forward(kernels::Stream& stream, const Weights& weights, const Batch& batch,
                              StepObserver& observer) {
  check_type_of(weights);
  const std::int64_t min_samples = mode_ == ProgramMode::training ? 0 : 1;
  check(batch.samples >= min_samples && batch.samples <= max_batch_, [&] {
    return "a batch has " + std::to_string(batch.samples) + " samples, expected " + std::to_string(min_samples) +
           " to " + std::to_string(max_batch_);
  });
  batch_ = batch.samples;
  random_ = batch.random;
  overwrites_buffers_ = batch.overwrites_buffers;
  input_dtype_ = batch.x_dtype == dtype_ ? std::nullopt : batch.x_dtype;
  check(!input_dtype_ || (input_dtype_ == kernels::DType::f32 && reads_f32()), "a batch has a type that no plan reads");
  enqueue_cut(stream, batch.x);
  observer.before_forward();
  for (std::size_t i = 0; i < plans_.stages.size(); ++i) {
    observer.weights_needed(plans_.stages[i].trained);
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
  Plan& plan = *plans_.stages[stage].plan;
  const auto pass = [&](int shard) {
    return ForwardPass{.batch = samples_of(shard),
                       .shard = shard,
                       .x = read(plans_.stages[stage].x, shard),
                       .x_dtype = dtype_read(plans_.stages[stage].x),
                       .residual = residual_of(stage, shard),
                       .y = output_of(stage, shard),
                       .parameters = parameters,
                       .buffers = buffers,
                       .overwrites_buffers = overwrites_buffers_,
                       .saved = saved_of(stage, shard),
                       .kept = kept_of(stage),
                       .recomputed = recomputed,
                       .random = random_of(shard),
                       .workspace = workspace_.data()};
  };
  if (plan.has_statistics() && !recomputed)
    for_each_shard(true, [&](int shard) { plan.enqueue_statistics(stream, pass(shard)); });
  for_each_shard(false, [&](int shard) { plan.enqueue_forward(stream, pass(shard)); });
}

template <class Visit>
void Program::for_each_shard(bool all, const Visit& visit) const {
  for (int shard = 0; shard < shards_.count; ++shard)
    if (all || samples_of(shard) > 0) visit(shard);
}

/// Plans find the shards of the input aligned.
void Program::enqueue_cut(kernels::Stream& stream, const void* x) {
  input_ = x;
  if (shards_.count == 1) return;
  input_ = cut_input_.data();
  const std::size_t sample_bytes = input_bytes_ / static_cast<std::size_t>(shards_.size);
  for_each_shard(false, [&](int shard) {
    stream.enqueue_copy(of_shard(cut_input_.data(), input_bytes_, shard),
                        static_cast<const std::byte*>(x) + static_cast<std::size_t>(shard) * input_bytes_,
                        static_cast<std::size_t>(samples_of(shard)) * sample_bytes);
  });
}

void Program::enqueue_loss(kernels::Stream& stream, const LossTarget& target) {
  check(mode_ == ProgramMode::evaluation && batch_ > 0,
        "enqueue_loss needs an evaluation program and a forward pass before it");
  plans_.head.plan->enqueue(stream, pass_of(target, 0));
}

/// `offset`: of the plan's memory; none: it adds up its sums.
PartialSumsTo Program::partial_sums_of(const Gradients& gradients, std::optional<std::size_t> offset) const {
  if (!gradients.partial_sums || !offset) return {};
  return {.list = gradients.partial_sums, .memory = partial_sums_.data() + *offset};
}

LossPass Program::pass_of(const LossTarget& target, int shard) const {
  return {.rows = samples_of(shard),
          .x = read(plans_.head.x, shard),
          .labels = target.labels + shard * shards_.size,
          .soft = target.soft.from(shard * shards_.size),
          .scale = target.scale,
          .loss_scale = target.loss_scale,
          .loss_sum = target.loss_sum,
          .correct = target.correct,
          .arrivals = target.arrivals,
          .workspace = workspace_.data()};
}

void Program::enqueue_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                               const LossTarget& target, StepObserver& observer) {
  check(mode_ == ProgramMode::training && batch_ > 0,
        "enqueue_backward needs a training program and a forward pass before it");
  check_type_of(weights);
  walk_backward(
      observer,
      {.head = [&] { enqueue_head(stream, weights, gradients, target, observer); },
       .recompute = [&](std::size_t stage) { enqueue_stage(stream, weights, stage, true); },
       .stage = [&](std::size_t stage) { enqueue_stage_backward(stream, weights, gradients, stage, observer); }});
}

void Program::enqueue_empty_batch(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                  StepObserver& observer) {
  const auto clear = [&](const std::vector<int>& parameters) {
    for (const int index : parameters)
      stream.enqueue_zero(gradients.parameter(index), gradients.layout.parameter(index).elements * sizeof(float));
  };
  stream.enqueue_zero(gradients.piggyback, gradients.layout.piggyback().elements * sizeof(float));
  enqueue_forward(stream, weights, {.x = activations_.data()}, observer);  // x is not read
  walk_backward(observer, {.head = [&] { clear(plans_.head.parameters); },
                           .recompute = [](std::size_t) {},
                           .stage =
                               [&](std::size_t stage) {
                                 if (plans_.stages[stage].plan->has_statistics())
                                   enqueue_stage_backward(stream, weights, gradients, stage, observer);
                                 else
                                   clear(plans_.stages[stage].trained);
                               }});
}

/// From the loss to the first stage that has a backward pass, with recomputation; makes the observer's calls.
void Program::walk_backward(StepObserver& observer, const BackwardWork& work) const {
  observer.before_backward();
  announce(observer, plans_.head.parameters);
  work.head();
  tell(observer, plans_.head.parameters);
  const std::vector<std::size_t>& ends = segments_.ends;
  for (std::size_t segment = ends.size(); segment-- > 0;) {
    const std::size_t first = segment == 0 ? first_of_backward_ : ends[segment - 1] + 1;
    for (std::size_t i = first; i < ends[segment] && segment + 1 < ends.size(); ++i) {  // the last segment still exists
      observer.weights_needed(plans_.stages[i].trained);
      work.recompute(i);
    }
    for (std::size_t i = ends[segment] + 1; i-- > first;) {
      if (!plans_.stages[i].backward) continue;
      announce(observer, plans_.stages[i].trained);
      work.stage(i);
      tell(observer, plans_.stages[i].trained);
    }
  }
}

void Program::enqueue_stage_backward(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                                     std::size_t stage, StepObserver& observer) {
  const PlannedStage& planned = plans_.stages[stage];
  const auto parameters = pointers(weights, planned.parameters);
  const std::vector<float*> dparameters = gradient_pointers(gradients, planned);
  const std::size_t residual = planned.residual.value_or(kProgramInput);
  const bool dx_is_summand = adds_dx(plans_, stage, last_readers_);
  const bool dresidual_is_summand = adds_dresidual(plans_, stage, last_readers_);
  const std::size_t summands = plans_.stages.size() + 2 * stage;
  const auto pass = [&](int shard) {
    const auto gradient_of = [&](std::size_t read, std::size_t number) {
      return plans_.has_gradient(read) ? gradient_at(number, read, shard) : nullptr;
    };
    PartialSumsTo sums = partial_sums_of(gradients, planned.partial_sums);
    if (sums.list && plans_.has_gradient(planned.x)) sums.branch = &*branch_;
    return BackwardPass{.batch = samples_of(shard),
                        .shard = shard,
                        .x = read(planned.x, shard),
                        .x_dtype = dtype_read(planned.x),
                        .y = output_of(stage, shard),
                        .dy = gradient_at(stage, stage, shard),
                        .dy_is_masked = plans_.head.masks_dx && stage == plans_.head.x,
                        .dx = gradient_of(planned.x, dx_is_summand ? summands : planned.x),
                        .dresidual = gradient_of(residual, dresidual_is_summand ? summands + 1 : residual),
                        .parameters = parameters,
                        .gradients = dparameters,
                        .saved = saved_of(stage, shard),
                        .kept = kept_of(stage),
                        .random = random_of(shard),
                        .workspace = workspace_.data(),
                        .partial_sums = sums};
  };
  const bool has_sums = planned.plan->has_statistics();
  if (has_sums)
    for_each_shard(true, [&](int shard) {
      planned.plan->enqueue_sums(stream, pass(shard));
      observer.gradients_of_shard(planned.trained);
    });
  for_each_shard(false, [&](int shard) {
    const BackwardPass one = pass(shard);
    planned.plan->enqueue_backward(stream, one);
    if (dx_is_summand) enqueue_sum(stream, planned.x, shard, one.dx);
    if (dresidual_is_summand) enqueue_sum(stream, residual, shard, one.dresidual);
    if (one.partial_sums.branch) one.partial_sums.branch->join(stream);  // before memory of dy is written again
    if (!has_sums) observer.gradients_of_shard(planned.trained);
  });
}

/// Adds to the gradient of a stage's output. An Add needs no workspace, which may still be in use on the branch.
void Program::enqueue_sum(kernels::Stream& stream, std::size_t stage, int shard, const void* summand) {
  const auto elements = static_cast<std::int64_t>(plans_.stages[stage].output_bytes / kernels::size_of(dtype_));
  std::byte* const gradient = gradient_at(stage, stage, shard);
  plans_.sum->enqueue_forward(
      stream,
      {.batch = samples_of(shard) * (elements / shards_.size), .x = gradient, .residual = summand, .y = gradient});
}

void Program::enqueue_head(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                           const LossTarget& target, StepObserver& observer) {
  const auto parameters = pointers(weights, plans_.head.parameters);
  const auto dparameters = pointers(gradients, plans_.head.parameters);
  for_each_shard(false, [&](int shard) {
    LossPass pass = pass_of(target, shard);
    pass.parameters = parameters;
    if (logits_.size() > 0) pass.logits = of_shard(logits_.data(), plans_.head.logits_bytes, shard);
    pass.dx = gradient_at(plans_.head.x, plans_.head.x, shard);
    pass.gradients = dparameters;
    pass.x_is_relu = plans_.head.masks_dx;
    pass.partial_sums = partial_sums_of(gradients, plans_.head.partial_sums);
    plans_.head.plan->enqueue(stream, pass);
    observer.loss_of_shard();
    observer.gradients_of_shard(plans_.head.parameters);
  });
}

void Program::check_type_of(const Weights& weights) const {
  check(weights.dtype == dtype_, [&] {
    return "weights have type " + std::string(name_of(weights.dtype)) + ", expected " + std::string(name_of(dtype_));
  });
}

std::vector<PlanDescription> Program::description() const {
  std::vector<PlanDescription> all;
  for (const PlannedStage& stage : plans_.stages) all.push_back({stage.layers, stage.plan->description()});
  all.push_back({plans_.head.layers, plans_.head.plan->description()});
  return all;
}

std::vector<int> Program::ready_order(const Model& model) {
  const std::vector<Parameter> parameters = parameters_of(model);
  std::vector<int> order;
  for (int i = static_cast<int>(parameters.size()); i-- > 0;)
    if (!parameters[static_cast<std::size_t>(i)].frozen) order.push_back(i);
  return order;
}

ArenaLayout Program::buffer_layout(const Model& model) {
  const std::vector<Parameter> buffers = nn::buffers_of(model);
  std::vector<int> all(buffers.size());
  std::iota(all.begin(), all.end(), 0);
  return {buffers, {&all, 1}, 1};
}

}  // namespace gradring::nn
