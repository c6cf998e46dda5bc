// SPDX-License-Identifier: Apache-2.0
#include "nn/program/program.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "kernels/runtime/error.h"

namespace gradring::nn {

/// One plan and what the program lends it.
struct Program::Stage {
  std::unique_ptr<Plan> plan;
  std::vector<int> parameters;
  void* y = nullptr;
  kernels::Buffer saved;
};

/// The loss, and what layers it takes with it.
struct Program::Head {
  std::unique_ptr<LossPlan> plan;
  std::vector<int> parameters;
  kernels::Buffer logits;  ///< empty where the last stage leaves them
};

namespace {

std::vector<NodeSpec> nodes_of(const Model& model, std::int64_t batch, kernels::DType dtype) {
  std::vector<NodeSpec> nodes;
  Shape shape{batch, model.sample[0], model.sample[1], model.sample[2]};
  for (const NamedLayer& named : model.layers) {
    const Shape output = output_shape(named.layer, shape);
    if (!std::holds_alternative<Flatten>(named.layer)) nodes.push_back({named.layer, shape, output, dtype});
    shape = output;
  }
  check(!nodes.empty() && nodes.back().output == Shape({batch, model.classes}),
        "model " + model.name + " must end in [n, " + std::to_string(model.classes) + "] logits");
  return nodes;
}

int parameter_count(const NodeSpec& node) {
  return std::holds_alternative<Conv2d>(node.layer) || std::holds_alternative<Linear>(node.layer) ? 2 : 0;
}

/// The parameters of `nodes`, of which the first is number `next`; moves that on.
std::vector<int> number_parameters(std::span<const NodeSpec> nodes, int& next) {
  std::vector<int> numbers;
  for (const NodeSpec& node : nodes)
    for (int i = 0; i < parameter_count(node); ++i) numbers.push_back(next++);
  return numbers;
}

std::size_t output_bytes_of(const NodeSpec& node) {
  return static_cast<std::size_t>(node.output.elements()) * kernels::size_of(node.dtype);
}

/// Where some parameters lie in Weights, or their gradients in an Arena.
template <class Tensors>
auto pointers(const Tensors& tensors, const std::vector<int>& parameters) {
  std::vector<decltype(tensors.parameter(0))> all;
  for (int index : parameters) all.push_back(tensors.parameter(index));
  return all;
}

/// A layer's last parameter is ready first.
void tell(StepObserver& observer, const std::vector<int>& parameters) {
  for (auto index = parameters.rbegin(); index != parameters.rend(); ++index) observer.gradient_ready(*index);
}

}  // namespace

Program::Program(const Model& model, std::int64_t max_batch, ProgramMode mode, Backend& backend,
                 kernels::Device& device, kernels::DType dtype)
    : max_batch_(max_batch), mode_(mode), dtype_(dtype), head_(std::make_unique<Head>()) {
  check(max_batch > 0, "a program's batch must be positive, not " + std::to_string(max_batch));
  const std::vector<NodeSpec> nodes = nodes_of(model, max_batch, dtype);
  const bool may_fuse = mode == ProgramMode::training && nodes.size() > 1;  // else nobody asks for the loss, or for dx
  head_->plan = backend.plan_cross_entropy({.rows = max_batch, .classes = model.classes, .dtype = dtype},
                                           may_fuse ? &nodes.back() : nullptr);
  const std::size_t in_head = head_->plan->nodes();
  check(in_head <= (may_fuse ? 1u : 0u), "a plan of the loss took layers that it was not given");

  std::size_t workspace_bytes = head_->plan->workspace_bytes();
  std::size_t largest_activation = 0;
  std::vector<std::size_t> output_bytes;
  int next_parameter = 0;
  for (std::span<const NodeSpec> rest = std::span(nodes).first(nodes.size() - in_head); !rest.empty();) {
    Stage stage{.plan = backend.plan(rest), .parameters = {}, .y = nullptr, .saved = {}};
    const std::size_t taken = stage.plan->nodes();
    check(taken >= 1 && taken <= rest.size(), "a plan must take at least one node and no more than there are");
    stage.parameters = number_parameters(rest.first(taken), next_parameter);
    stage.saved = device.allocate(stage.plan->saved_bytes());
    workspace_bytes = std::max(workspace_bytes, stage.plan->workspace_bytes());
    output_bytes.push_back(output_bytes_of(rest[taken - 1]));
    largest_activation = std::max(largest_activation, output_bytes.back());
    stages_.push_back(std::move(stage));
    rest = rest.subspan(taken);
  }
  head_->parameters = number_parameters(std::span(nodes).last(in_head), next_parameter);
  if (in_head > 0) head_->logits = device.allocate(output_bytes_of(nodes.back()));

  // Evaluation forgets an activation once the next is there: two buffers used in turn are enough.
  if (mode == ProgramMode::training)
    for (std::size_t bytes : output_bytes) activations_.push_back(device.allocate(bytes));
  else
    for (int i = 0; i < 2; ++i) activations_.push_back(device.allocate(largest_activation));
  for (std::size_t i = 0; i < stages_.size(); ++i) stages_[i].y = activations_[i % activations_.size()].data();
  if (mode == ProgramMode::training)
    for (int i = 0; i < 2; ++i) gradients_.push_back(device.allocate(largest_activation));
  workspace_ = device.allocate(workspace_bytes);
}

Program::~Program() = default;

void Program::enqueue_forward(kernels::Stream& stream, const Weights& weights, const void* x, std::int64_t batch,
                              StepObserver& observer) {
  check_type_of(weights);
  check(batch > 0 && batch <= max_batch_,
        "a batch of " + std::to_string(batch) + " samples for a program of 1 to " + std::to_string(max_batch_));
  batch_ = batch;
  input_ = x;
  observer.before_forward();
  for (Stage& stage : stages_) {
    const auto parameters = pointers(weights, stage.parameters);
    stage.plan->enqueue_forward(stream, {.batch = batch,
                                         .x = x,
                                         .y = stage.y,
                                         .parameters = parameters,
                                         .saved = stage.saved.data(),
                                         .workspace = workspace_.data()});
    x = stage.y;
  }
}

void Program::enqueue_loss(kernels::Stream& stream, const LossTarget& target) {
  check(mode_ == ProgramMode::evaluation && batch_ > 0,
        "a loss by itself needs an evaluation program and a forward pass before it");
  head_->plan->enqueue(stream, pass_of(target));
}

LossPass Program::pass_of(const LossTarget& target) const {
  return {.rows = batch_,
          .x = stages_.back().y,
          .labels = target.labels,
          .scale = target.scale,
          .loss_scale = target.loss_scale,
          .loss_sum = target.loss_sum,
          .correct = target.correct,
          .workspace = workspace_.data()};
}

void Program::enqueue_backward(kernels::Stream& stream, const Weights& weights, const Arena& gradients,
                               const LossTarget& target, StepObserver& observer) {
  check(mode_ == ProgramMode::training && batch_ > 0, "backward needs a training program and a forward pass before it");
  check_type_of(weights);
  observer.before_backward();
  enqueue_head(stream, weights, gradients, target);
  tell(observer, head_->parameters);
  std::array<void*, 2> turn = {gradients_[0].data(), gradients_[1].data()};
  for (std::size_t i = stages_.size(); i-- > 0;) {
    Stage& stage = stages_[i];
    const auto parameters = pointers(weights, stage.parameters);
    const auto dparameters = pointers(gradients, stage.parameters);
    stage.plan->enqueue_backward(stream, {.batch = batch_,
                                          .x = i == 0 ? input_ : stages_[i - 1].y,
                                          .y = stage.y,
                                          .dy = turn[0],
                                          .dx = i == 0 ? nullptr : turn[1],
                                          .parameters = parameters,
                                          .gradients = dparameters,
                                          .saved = stage.saved.data(),
                                          .workspace = workspace_.data()});
    tell(observer, stage.parameters);
    std::swap(turn[0], turn[1]);
  }
}

void Program::enqueue_head(kernels::Stream& stream, const Weights& weights, const Arena& gradients,
                           const LossTarget& target) {
  const auto parameters = pointers(weights, head_->parameters);
  const auto dparameters = pointers(gradients, head_->parameters);
  LossPass pass = pass_of(target);
  pass.parameters = parameters;
  pass.logits = head_->logits.data();
  pass.dx = gradients_[0].data();
  pass.gradients = dparameters;
  head_->plan->enqueue(stream, pass);
}

const void* Program::logits() const { return head_->logits.size() > 0 ? head_->logits.data() : stages_.back().y; }

void Program::check_type_of(const Weights& weights) const {
  check(weights.dtype == dtype_, "weights of type " + std::string(name_of(weights.dtype)) +
                                     " for a program that computes in " + std::string(name_of(dtype_)));
}

std::size_t Program::memory_bytes() const {
  std::size_t bytes = workspace_.size() + head_->logits.size();
  for (const Stage& stage : stages_) bytes += stage.saved.size();
  for (const kernels::Buffer& buffer : activations_) bytes += buffer.size();
  for (const kernels::Buffer& buffer : gradients_) bytes += buffer.size();
  return bytes;
}

std::vector<int> Program::ready_order(const Model& model) {
  std::vector<int> order(parameters_of(model).size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

}  // namespace gradring::nn
