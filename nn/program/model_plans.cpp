// SPDX-License-Identifier: Apache-2.0
#include "nn/program/model_plans.h"

#include <algorithm>
#include <span>
#include <utility>

#include "kernels/base/error.h"
#include "nn/program/activation_memory.h"

namespace gradring::nn {
namespace {

/// Whether the layer's output is what it reads, perhaps in another shape.
bool passes_on(const Layer& layer, bool trains) {
  const auto* const dropout = std::get_if<Dropout>(&layer);
  return std::holds_alternative<Flatten>(layer) || (dropout && (!trains || dropout->p == 0));
}

/// The layers of a model that compute something.
struct Nodes {
  std::vector<NodeSpec> specs;
  std::vector<std::vector<std::size_t>> reads;  // the nodes that each reads, or kProgramInput
  std::vector<int> readers;                     // of each

  /// The nodes from `first` to before `end` that a backend may plan together.
  std::span<const NodeSpec> chain(std::size_t first, std::size_t end) const {
    std::size_t next = first + 1;
    for (bool adds = reads[first].size() > 1; next < end; ++next) {
      if (std::ranges::count(reads[next], next - 1) != 1 || readers[next - 1] != 1) break;
      if (reads[next].size() > 1 && std::exchange(adds, true)) break;
    }
    return std::span(specs).subspan(first, next - first);
  }
};

/// Which of the next parameters in state_dict order are frozen, as many as the layer has; removes them.
std::vector<bool> take_frozen(const Layer& layer, const Activations& input, std::span<const Parameter>& parameters) {
  const std::size_t count = parameters_of(layer, input).size();
  std::vector<bool> frozen;
  for (const Parameter& parameter : parameters.first(count)) frozen.push_back(parameter.frozen);
  parameters = parameters.subspan(count);
  return frozen;
}

/// A gradient goes through a node if one of its parameters is trained, or of those of nodes before it.
Backward backward_of(const std::vector<bool>& frozen, bool reads_gradients) {
  if (std::ranges::count(frozen, false) > 0) return reads_gradients ? Backward::all : Backward::parameters;
  return reads_gradients ? Backward::input : Backward::none;
}

/// The layer with a stride of at most the side of its padded input. A larger stride gives the same single window, and
/// overflows the sums of libraries.
Layer with_bounded_stride(Layer layer, const Shape& input) {
  std::visit(
      [&](auto& windows) {
        if constexpr (requires { windows.stride; })
          windows.stride = std::min(windows.stride, std::max(input[1], input[2]) + 2 * windows.padding);
      },
      layer);
  return layer;
}

Nodes nodes_of(const Model& model, std::int64_t batch, kernels::DType dtype, bool trains, ReplicaStatistics* replicas) {
  const std::vector<std::vector<std::size_t>> reads = reads_of(model);
  const std::vector<Activations> activations = activations_of(model, batch);
  const std::vector<Parameter> all_parameters = parameters_of(model);
  std::span<const Parameter> parameters = all_parameters;
  std::vector<std::size_t> holders = {kProgramInput};  // of the model's input and each layer's output, the node
  Nodes nodes;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const auto& [name, layer, inputs] = model.layers[i];
    if (passes_on(layer, trains)) {
      holders.push_back(holders[reads[i].front()]);
      continue;
    }
    std::vector<std::size_t>& mine = nodes.reads.emplace_back();
    for (const std::size_t read : reads[i]) mine.push_back(holders[read]);
    bool reads_gradients = false;
    for (const std::size_t read : mine) {
      if (read == kProgramInput) continue;
      ++nodes.readers[read];
      reads_gradients = reads_gradients || nodes.specs[read].backward != Backward::none;
    }
    const Activations& input = activations[reads[i].front()];
    std::vector<bool> frozen = take_frozen(layer, input, parameters);
    const Backward backward = trains ? backward_of(frozen, reads_gradients) : Backward::none;
    nodes.specs.push_back({.layer = with_bounded_stride(layer, input.shape),
                           .input = input.shape,
                           .output = activations[i + 1].shape,
                           .dtype = dtype,
                           .name = name,
                           .number = static_cast<std::int64_t>(i),
                           .trains = trains,
                           .backward = backward,
                           .frozen = std::move(frozen),
                           .replicas = replicas});
    nodes.readers.push_back(0);
    holders.push_back(nodes.specs.size() - 1);
  }
  check(!nodes.specs.empty() && activations.back().shape == Shape({batch, model.classes}),
        [&] { return "model " + model.name + " must end in [n, " + std::to_string(model.classes) + "] logits"; });
  check(!trains || nodes.specs.back().backward != Backward::none,
        [&] { return "every parameter of model " + model.name + " is frozen, expected at least one to train"; });
  return nodes;
}

/// The next parameter and buffer in state_dict order.
struct Numbers {
  int parameter = 0;
  int buffer = 0;
};

std::vector<int> number(std::size_t count, int& next) {
  std::vector<int> numbers;
  for (; count > 0; --count) numbers.push_back(next++);
  return numbers;
}

std::vector<int> number_parameters(std::span<const NodeSpec> nodes, Numbers& next) {
  std::size_t count = 0;
  for (const NodeSpec& node : nodes) count += parameters_of(node.layer, node.input).size();
  return number(count, next.parameter);
}

std::vector<int> number_buffers(std::span<const NodeSpec> nodes, Numbers& next) {
  std::size_t count = 0;
  for (const NodeSpec& node : nodes) count += buffers_of(node.layer, node.input).size();
  return number(count, next.buffer);
}

/// Those of `parameters`, which are of `nodes`, that are not frozen.
std::vector<int> trained_of(std::span<const NodeSpec> nodes, const std::vector<int>& parameters) {
  std::vector<int> trained;
  auto parameter = parameters.begin();
  for (const NodeSpec& node : nodes)
    for (const bool frozen : node.frozen) {
      if (!frozen) trained.push_back(*parameter);
      ++parameter;
    }
  return trained;
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

PlannedStage plan_stage(std::span<const NodeSpec> chain, Backend& backend, Numbers& next) {
  PlannedStage stage{.plan = backend.plan(chain)};
  const std::size_t taken = stage.plan->nodes();
  check(taken >= 1 && taken <= chain.size(), [&] {
    return "a plan takes " + std::to_string(taken) + " nodes, expected 1 to " + std::to_string(chain.size());
  });
  stage.parameters = number_parameters(chain.first(taken), next);
  stage.trained = trained_of(chain.first(taken), stage.parameters);
  stage.backward = chain[taken - 1].backward != Backward::none;
  stage.buffers = number_buffers(chain.first(taken), next);
  stage.layers = names_of(chain.first(taken));
  stage.output_bytes = output_bytes_of(chain[taken - 1]);
  for (const NodeSpec& node : chain.first(taken)) stage.forward_work += work_of(node);
  return stage;
}

/// Sets what a stage of nodes [first, end) reads. `stage_of`: of each node's output.
void connect(PlannedStage& stage, const Nodes& nodes, std::size_t first, std::size_t end,
             const std::vector<std::size_t>& stage_of) {
  const auto producer = [&](std::size_t node) { return node == kProgramInput ? kProgramInput : stage_of[node]; };
  stage.x = producer(nodes.reads[first].front());
  for (std::size_t node = first; node < end; ++node) {
    const std::vector<std::size_t>& reads = nodes.reads[node];
    if (reads.size() < 2) continue;
    const bool second = node == first || reads.front() == node - 1;
    stage.residual = producer(reads[second ? 1 : 0]);
  }
}

/// Of the gradients of outputs with several readers: an Add of [elements, 1].
std::unique_ptr<Plan> plan_sum(const Nodes& nodes, Backend& backend) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i < nodes.specs.size(); ++i)
    if (nodes.readers[i] > 1 && nodes.specs[i].backward != Backward::none)
      most = std::max(most, nodes.specs[i].output.elements());
  if (most == 0) return nullptr;
  const Shape elements{most, 1};
  const NodeSpec sum{
      .layer = Add{}, .input = elements, .output = elements, .dtype = nodes.specs[0].dtype, .name = "sum"};
  return backend.plan({&sum, 1});
}

}  // namespace

std::vector<std::size_t> ModelPlans::last_readers() const {
  std::vector<std::size_t> last(stages.size());
  const auto reads = [&](std::size_t stage, std::size_t reader) {
    if (stage != kProgramInput) last[stage] = reader;
  };
  for (std::size_t i = 0; i < stages.size(); ++i) {
    reads(stages[i].x, i);
    if (stages[i].residual) reads(*stages[i].residual, i);
  }
  reads(head.x, stages.size());
  return last;
}

void ModelPlans::assign_partial_sums(std::size_t most_bytes) {
  constexpr std::size_t kAlignment = ActivationLayout::kAlignment;
  const auto assign = [&](std::size_t bytes) -> std::optional<std::size_t> {
    if (bytes == 0 || partial_sum_bytes + bytes > most_bytes) return std::nullopt;
    const std::size_t offset = partial_sum_bytes;
    partial_sum_bytes += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  };
  head.partial_sums = assign(head.plan->partial_sum_bytes());
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage)
    if (!stage->trained.empty()) stage->partial_sums = assign(stage->plan->partial_sum_bytes());
}

std::size_t ModelPlans::first_of_backward() const {
  const auto first = std::ranges::find(stages, true, &PlannedStage::backward);
  return first == stages.end() ? 0 : static_cast<std::size_t>(first - stages.begin());
}

bool ModelPlans::read_input_as(kernels::DType x_dtype) const {
  const bool stages_do = std::ranges::all_of(stages, [&](const PlannedStage& stage) {
    const bool reads_input = stage.x == kProgramInput || stage.residual == kProgramInput;
    return !reads_input || (!stage.residual && stage.plan->reads(x_dtype));
  });
  return stages_do && head.x != kProgramInput;
}

ModelPlans plan_model(const Model& model, std::int64_t batch, kernels::DType dtype, bool trains, Backend& backend,
                      ReplicaStatistics* replicas) {
  const Nodes nodes = nodes_of(model, batch, dtype, trains, replicas);
  const std::size_t count = nodes.specs.size();
  // Fused with the loss, a layer computes all its gradients.
  const bool may_fuse = trains && wants_every_gradient(nodes.specs.back()) && wants_dx(nodes.specs.back().backward);
  ModelPlans plans;
  plans.head.plan = backend.plan_cross_entropy({.rows = batch, .classes = model.classes, .dtype = dtype},
                                               may_fuse ? &nodes.specs.back() : nullptr);
  const std::size_t in_head = plans.head.plan->nodes();
  check(in_head <= (may_fuse ? 1u : 0u), "a plan of the loss takes layers that it was not given");

  plans.workspace_bytes = plans.head.plan->workspace_bytes();
  Numbers next;
  std::vector<std::size_t> stage_of(count, kProgramInput);
  for (std::size_t first = 0; first + in_head < count;) {
    PlannedStage stage = plan_stage(nodes.chain(first, count - in_head), backend, next);
    const std::size_t end = first + stage.plan->nodes();
    connect(stage, nodes, first, end, stage_of);
    stage_of[end - 1] = plans.stages.size();
    plans.workspace_bytes = std::max(plans.workspace_bytes, stage.plan->workspace_bytes());
    plans.stages.push_back(std::move(stage));
    first = end;
  }
  const std::size_t head_reads = in_head > 0 ? nodes.reads.back().front() : count - 1;
  plans.head.x = stage_of[head_reads];
  plans.head.masks_dx = in_head > 0 && head_reads != kProgramInput && nodes.readers[head_reads] == 1 &&
                        std::holds_alternative<Relu>(nodes.specs[head_reads].layer);
  plans.head.parameters = number_parameters(std::span(nodes.specs).last(in_head), next);
  plans.head.layers = names_of(std::span(nodes.specs).last(in_head));
  if (in_head > 0) plans.head.logits_bytes = output_bytes_of(nodes.specs.back());
  if (trains) plans.sum = plan_sum(nodes, backend);
  return plans;
}

}  // namespace gradring::nn
