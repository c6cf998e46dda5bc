// SPDX-License-Identifier: Apache-2.0
#include "nn/program/program.h"

#include <algorithm>
#include <numeric>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

std::vector<NodeSpec> nodes_of(const Model& model, std::int64_t batch, kernels::DType dtype, bool trains) {
  const std::vector<Activations> inputs = activations_of(model, batch);
  std::vector<NodeSpec> nodes;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer] = model.layers[i];
    check(std::visit([&](const auto& one) { return one.buffers(inputs[i]).empty(); }, layer),
          name + " has buffers, which a program does not keep");
    const Backward backward = !trains ? Backward::none : nodes.empty() ? Backward::parameters : Backward::all;
    if (!std::holds_alternative<Flatten>(layer))
      nodes.push_back({layer, inputs[i].shape, inputs[i + 1].shape, dtype, name, backward});
  }
  check(!nodes.empty() && inputs.back().shape == Shape({batch, model.classes}),
        [&] { return "model " + model.name + " must end in [n, " + std::to_string(model.classes) + "] logits"; });
  return nodes;
}

/// Indices of the parameters of `nodes`, starting at `next`, which is advanced.
std::vector<int> number_parameters(std::span<const NodeSpec> nodes, int& next) {
  std::vector<int> numbers;
  for (const NodeSpec& node : nodes)
    for (std::size_t i = parameters_of(node.layer, node.input).size(); i > 0; --i) numbers.push_back(next++);
  return numbers;
}

std::vector<std::string> names_of(std::span<const NodeSpec> nodes) {
  std::vector<std::string> names;
  for (const NodeSpec& node : nodes) names.push_back(node.name);
  return names;
}

std::size_t output_bytes_of(const NodeSpec& node) {
  return static_cast<std::size_t>(node.output.elements()) * kernels::size_of(node.dtype);
}

/// Approximate multiplications of its forward pass.
double work_of(const NodeSpec& node) {
  const auto each = std::visit([](const auto& layer) { return layer.multiplications(); }, node.layer);
  return static_cast<double>(node.output.elements()) * static_cast<double>(each);
}

PlannedStage plan_stage(std::span<const NodeSpec> rest, Backend& backend, int& next_parameter) {
  PlannedStage stage{.plan = backend.plan(rest), .parameters = {}, .layers = {}};
  const std::size_t taken = stage.plan->nodes();
  check(taken >= 1 && taken <= rest.size(), [&] {
    return "a plan takes " + std::to_string(taken) + " nodes, expected 1 to " + std::to_string(rest.size());
  });
  stage.parameters = number_parameters(rest.first(taken), next_parameter);
  stage.layers = names_of(rest.first(taken));
  stage.output_bytes = output_bytes_of(rest[taken - 1]);
  for (const NodeSpec& node : rest.first(taken)) stage.forward_work += work_of(node);
  return stage;
}

/// `trains`: there is a backward pass, and the backend may plan the loss together with the last layer.
///
/// Errors    InvalidArgument if the layers do not fit each other or the backend.
ModelPlans plan_model(const Model& model, std::int64_t batch, kernels::DType dtype, bool trains, Backend& backend) {
  const std::vector<NodeSpec> nodes = nodes_of(model, batch, dtype, trains);
  const bool may_fuse = trains && nodes.size() > 1;  // a fused first layer would compute a gradient of the images
  ModelPlans plans;
  plans.head.plan = backend.plan_cross_entropy({.rows = batch, .classes = model.classes, .dtype = dtype},
                                               may_fuse ? &nodes.back() : nullptr);
  const std::size_t in_head = plans.head.plan->nodes();
  check(in_head <= (may_fuse ? 1u : 0u), "a plan of the loss takes layers that it was not given");

  plans.workspace_bytes = plans.head.plan->workspace_bytes();
  int next_parameter = 0;
  for (std::span<const NodeSpec> rest = std::span(nodes).first(nodes.size() - in_head); !rest.empty();) {
    plans.stages.push_back(plan_stage(rest, backend, next_parameter));
    const Plan& plan = *plans.stages.back().plan;
    plans.workspace_bytes = std::max(plans.workspace_bytes, plan.workspace_bytes());
    rest = rest.subspan(plan.nodes());
  }
  plans.head.parameters = number_parameters(std::span(nodes).last(in_head), next_parameter);
  plans.head.layers = names_of(std::span(nodes).last(in_head));
  if (in_head > 0) plans.head.logits_bytes = output_bytes_of(nodes.back());
  return plans;
}

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
    bytes.push_back({.output = stage.output_bytes, .saved = stage.plan->saved_bytes()});
  return bytes;
}

std::vector<StageCost> costs_of(const std::vector<PlannedStage>& stages) {
  std::vector<StageCost> costs;
  const std::vector<StageBytes> bytes = bytes_of(stages);
  for (std::size_t i = 0; i < stages.size(); ++i)
    costs.push_back({.bytes = bytes[i].padded(), .work = stages[i].forward_work});
  return costs;
}

}  // namespace

Program::Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend,
                 const ProgramDevices& devices, kernels::DType dtype, const Checkpointing& checkpointing)
    : max_batch_(max_batch), mode_(mode), dtype_(dtype) {
  check(max_batch > 0,
        [&] { return "the batch size of a program is " + std::to_string(max_batch) + ", expected 1 or more"; });
  const bool trains = mode == ProgramMode::training;
  check(trains || checkpointing.kind == Checkpointing::Kind::none, "checkpointing needs a training program");
  plans_ = plan_model(model, max_batch, dtype, trains, backend);
  segments_ = choose_segments(costs_of(plans_.stages), checkpointing);
  const std::vector<StageBytes> bytes = bytes_of(plans_.stages);
  layout_ = trains ? lay_out_for_backward(bytes, segments_.ends) : lay_out_for_forward(bytes);

  activations_ = devices.activations.allocate(layout_.bytes);
  if (trains)
    for (std::size_t i = 0; i < gradients_.size(); ++i)
      gradients_[i] = devices.activations.allocate(sizes_in_turn(bytes)[i]);
  logits_ = devices.activations.allocate(plans_.head.logits_bytes);
  workspace_ = devices.workspace.allocate(plans_.workspace_bytes);
}

void Program::enqueue_forward(kernels::Stream& stream, const Weights& weights, const void* x, std::int64_t batch,
                              StepObserver& observer) {
  check_type_of(weights);
  check(batch > 0 && batch <= max_batch_, [&] {
    return "a batch has " + std::to_string(batch) + " samples, expected 1 to " + std::to_string(max_batch_);
  });
  batch_ = batch;
  input_ = x;
  observer.before_forward();
  for (std::size_t i = 0; i < plans_.stages.size(); ++i) {
    observer.weights_needed(plans_.stages[i].parameters);
    enqueue_stage(stream, weights, i);
  }
}

void Program::enqueue_stage(kernels::Stream& stream, const Weights& weights, std::size_t stage) {
  const auto parameters = pointers(weights, plans_.stages[stage].parameters);
  plans_.stages[stage].plan->enqueue_forward(stream, {.batch = batch_,
                                                      .x = input_of(stage),
                                                      .y = output_of(stage),
                                                      .parameters = parameters,
                                                      .saved = saved_of(stage),
                                                      .workspace = workspace_.data()});
}

void Program::enqueue_loss(kernels::Stream& stream, const LossTarget& target) {
  check(mode_ == ProgramMode::evaluation && batch_ > 0,
        "enqueue_loss needs an evaluation program and a forward pass before it");
  plans_.head.plan->enqueue(stream, pass_of(target));
}

LossPass Program::pass_of(const LossTarget& target) const {
  return {.rows = batch_,
          .x = input_of(plans_.stages.size()),
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
                 .recompute = [&](std::size_t stage) { enqueue_stage(stream, weights, stage); },
                 .stage = [&](std::size_t stage) { enqueue_stage_backward(stream, weights, gradients, stage); }});
}

void Program::enqueue_empty_batch(kernels::Stream& stream, const Gradients& gradients, StepObserver& observer) {
  const auto clear = [&](const std::vector<int>& parameters) {
    for (const int index : parameters)
      stream.enqueue_zero(gradients.parameter(index), gradients.layout.parameter(index).elements * sizeof(float));
  };
  stream.enqueue_zero(gradients.piggyback, gradients.layout.piggyback().elements * sizeof(float));
  observer.before_forward();
  for (const PlannedStage& stage : plans_.stages) observer.weights_needed(stage.parameters);
  walk_backward(observer, {.head = [&] { clear(plans_.head.parameters); },
                           .recompute = [](std::size_t) {},
                           .stage = [&](std::size_t stage) { clear(plans_.stages[stage].parameters); }});
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
  const auto parameters = pointers(weights, plans_.stages[stage].parameters);
  const auto dparameters = pointers(gradients, plans_.stages[stage].parameters);
  const std::size_t turn = (plans_.stages.size() - 1 - stage) % 2;
  plans_.stages[stage].plan->enqueue_backward(stream, {.batch = batch_,
                                                       .x = input_of(stage),
                                                       .y = output_of(stage),
                                                       .dy = gradients_[turn].data(),
                                                       .dx = stage == 0 ? nullptr : gradients_[1 - turn].data(),
                                                       .parameters = parameters,
                                                       .gradients = dparameters,
                                                       .saved = saved_of(stage),
                                                       .workspace = workspace_.data()});
}

void Program::enqueue_head(kernels::Stream& stream, const Weights& weights, const Gradients& gradients,
                           const LossTarget& target) {
  const auto parameters = pointers(weights, plans_.head.parameters);
  const auto dparameters = pointers(gradients, plans_.head.parameters);
  LossPass pass = pass_of(target);
  pass.parameters = parameters;
  pass.logits = logits_.data();
  pass.dx = gradients_[0].data();
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
          .activation_gradients = gradients_[0].size() + gradients_[1].size(),
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

}  // namespace gradring::nn
