// SPDX-License-Identifier: Apache-2.0
#include "nn/program/model_plans.h"

#include <algorithm>

#include "kernels/runtime/error.h"
#include "nn/models/model.h"

namespace gradring::nn {
namespace {

std::vector<NodeSpec> nodes_of(const Model& model, std::int64_t batch, kernels::DType dtype) {
  std::vector<NodeSpec> nodes;
  Shape shape{batch, model.sample[0], model.sample[1], model.sample[2]};
  for (const NamedLayer& named : model.layers) {
    const Shape output = output_shape(named.layer, shape);
    if (!std::holds_alternative<Flatten>(named.layer)) nodes.push_back({named.layer, shape, output, dtype, named.name});
    shape = output;
  }
  check(!nodes.empty() && nodes.back().output == Shape({batch, model.classes}),
        "model " + model.name + " must end in [n, " + std::to_string(model.classes) + "] logits");
  return nodes;
}

int parameter_count(const NodeSpec& node) {
  return std::holds_alternative<Conv2d>(node.layer) || std::holds_alternative<Linear>(node.layer) ? 2 : 0;
}

/// Indices of the parameters of `nodes`, starting at `next`, which is advanced.
std::vector<int> number_parameters(std::span<const NodeSpec> nodes, int& next) {
  std::vector<int> numbers;
  for (const NodeSpec& node : nodes)
    for (int i = 0; i < parameter_count(node); ++i) numbers.push_back(next++);
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

/// Multiplications for one output element.
double work_of_element(const Layer& layer) {
  return static_cast<double>(
      std::visit(Overloaded{[](const Conv2d& conv) { return conv.kernel * conv.kernel * conv.in_channels; },
                            [](const Linear& linear) { return linear.in_features; },
                            [](const MaxPool2d& pool) { return pool.window * pool.window; },
                            [](const auto&) { return std::int64_t{1}; }},
                 layer));
}

PlannedStage plan_stage(std::span<const NodeSpec> rest, Backend& backend, int& next_parameter) {
  PlannedStage stage{.plan = backend.plan(rest), .parameters = {}, .layers = {}};
  const std::size_t taken = stage.plan->nodes();
  check(taken >= 1 && taken <= rest.size(),
        "a plan takes " + std::to_string(taken) + " nodes, expected 1 to " + std::to_string(rest.size()));
  stage.parameters = number_parameters(rest.first(taken), next_parameter);
  stage.layers = names_of(rest.first(taken));
  stage.output_bytes = output_bytes_of(rest[taken - 1]);
  for (const NodeSpec& node : rest.first(taken))
    stage.forward_work += static_cast<double>(node.output.elements()) * work_of_element(node.layer);
  return stage;
}

}  // namespace

ModelPlans plan_model(const Model& model, const ModelPlansSpec& spec, Backend& backend) {
  const std::vector<NodeSpec> nodes = nodes_of(model, spec.batch, spec.dtype);
  const bool may_fuse =
      spec.loss_may_fuse && nodes.size() > 1;  // a fused first layer would compute a gradient of the images
  ModelPlans plans;
  plans.head.plan = backend.plan_cross_entropy({.rows = spec.batch, .classes = model.classes, .dtype = spec.dtype},
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

}  // namespace gradring::nn
