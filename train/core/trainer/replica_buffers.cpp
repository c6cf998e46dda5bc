// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/replica_buffers.h"

#include <fmt/format.h>

#include <utility>

#include "kernels/lib/variant.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

/// A rank's shard of a bucket is a multiple of this, so that NonFiniteCheck's blocks do not span shards.
constexpr std::size_t kShardElements = kernels::gradient_statistics::kBlock;

FrozenWeights make_frozen(const ReplicaSpec& spec, const ReplicaBuffers::Parts& parts) {
  kernels::Device& device = parts.ledger.on(MemoryClass::parameters);
  return {parts.shards.layout(),
          spec.precision,
          {.device = device,
           .group = parts.group,
           .stream = parts.stream,
           .cast = kernels::pick_variant(parts.kernels.cast, device, spec.precision)}};
}

std::unique_ptr<ComputeWeights> make_weights(const ReplicaSpec& spec, const ReplicaBuffers::Parts& parts,
                                             DistributedDataParallel& ddp, const FrozenWeights& frozen,
                                             float* buffers) {
  kernels::Device& device = parts.ledger.on(MemoryClass::master);
  const WeightParts weights{.device = device,
                            .group = parts.group,
                            .shards = parts.shards,
                            .cast = kernels::pick_variant(parts.kernels.cast, device, spec.precision),
                            .frozen = frozen.data(),
                            .buffers = buffers};
  if (spec.zero < 3) return std::make_unique<GatheredWeights>(weights, spec.precision);
  return std::make_unique<PrefetchedWeights>(weights, ddp, spec.precision, parts.slots);
}

/// Errors    UsageError as replica_model.
void check_batch_norm(const nn::Model& model, const ReplicaSpec& spec) {
  if (nn::buffers_of(model).empty()) return;
  if (spec.exact_terms > 0 && !spec.sync_batch_norm)
    throw UsageError(
        "--reproducible with batch normalization requires --sync-batchnorm, without which each rank normalizes its own "
        "batch: add it, or choose a model without batch normalization");
  if (spec.devices > 1)
    throw UsageError(
        "--data-parallel does not split batch normalization: start a rank for each device, or choose a model without "
        "batch normalization");
  if (spec.smallest_batch.samples != 1) return;
  const std::vector<nn::Activations> activations = nn::activations_of(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const nn::Activations& output = activations[i + 1];
    if (!std::holds_alternative<nn::BatchNorm2d>(model.layers[i].layer) || output.shape.elements() > output.channels)
      continue;
    throw UsageError(
        fmt::format("batch normalization {} has 1 value per channel in step {} of an epoch, from 1 sample of 1 x 1 "
                    "pixels; expected "
                    "2 or more, as a single value has no variance: use another --batch-size, {}or a training set with "
                    "a sample less",
                    model.layers[i].name, spec.smallest_batch.step,
                    spec.sync_batch_norm ? "" : "--sync-batchnorm on several ranks, "));
  }
}

}  // namespace

nn::Model replica_model(const ReplicaSpec& spec, const kernels::Shape& sample, std::int64_t classes) {
  nn::Model model = nn::make_model(spec.model, sample, classes);
  const std::vector<nn::Parameter> parameters = nn::parameters_of(model);
  const ParameterGroups groups = parameter_groups(parameters, spec.optimizer);
  model.frozen.clear();
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (groups.of(i).frozen) nn::freeze(model, parameters[i].name);
  check_batch_norm(model, spec);
  return model;
}

nn::ArenaLayout replica_layout(const ReplicaSpec& spec, const nn::Model& model,
                               std::span<const nn::Parameter> parameters, int world_size) {
  return nn::ArenaLayout(parameters, make_buckets(parameters, nn::Program::ready_order(model), spec.buckets),
                         kShardElements * static_cast<std::size_t>(world_size), TrainStep::kPiggybackedScalars);
}

StepSpec for_groups(StepSpec step, const ParameterGroups& groups) {
  if (step.groups == groups.groups.size()) return step;
  check(step.groups == 1, "a step has other parameter groups than its replica");
  const std::vector<float> table = step.learning_rates;
  for (; step.groups < groups.groups.size(); ++step.groups)
    step.learning_rates.insert(step.learning_rates.end(), table.begin(), table.end());
  return step;
}

Shards replica_shards(int zero, const nn::ArenaLayout& layout, int world_size, int rank) {
  return zero > 0 ? Shards(layout, world_size, rank) : Shards(layout, 1, 0);
}

std::size_t most_partial_sum_bytes(const ReplicaSpec& spec, const kernels::Device& device) {
  constexpr std::size_t kMost = 64 * 1024 * 1024;
  const bool reads_gradients_before = spec.accumulates || spec.devices > 1 || spec.exact_terms > 0;
  return device.id().kind == kernels::DeviceKind::cuda && !reads_gradients_before ? kMost : 0;
}

int slots_for(const nn::ArenaLayout& layout, const nn::Program& program) {
  return buckets_at_once(layout, program.parameters_of_plans()) + 1;
}

bool averages_are_read_in_place(const Shards& shards, kernels::DType dtype) {
  return shards.whole() && dtype == kernels::DType::f32;
}

ReplicaBuffers::ReplicaBuffers(const ReplicaSpec& spec, const Parts& parts)
    : gradients({.slots = spec.zero >= 2 ? parts.slots : 0}, parts.group, parts.shards.layout()),
      of_model(parts.model,
               {.device = parts.ledger.on(MemoryClass::master), .group = parts.group, .stream = parts.stream}),
      frozen(make_frozen(spec, parts)),
      ddp(parts.group, parts.shards.layout(), parts.ledger.on(MemoryClass::gradients), parts.stream,
          spec.overlap ? kernels::StreamMode::asynchronous : kernels::StreamMode::in_place),
      reducer(make_gradient_reducer({.wire = spec.wire,
                                     .sharded = spec.zero >= 2,
                                     .accumulates = spec.accumulates && !(spec.zero >= 2 && spec.sync_every_pass),
                                     .exact_terms = spec.exact_terms},
                                    {.device = parts.ledger.on(MemoryClass::gradients),
                                     .kernels = parts.kernels,
                                     .group = parts.group,
                                     .stream = parts.stream,
                                     .gradients = gradients,
                                     .shards = parts.shards,
                                     .ddp = ddp,
                                     .partial_sums = partial_sums})),
      weights(make_weights(spec, parts, ddp, frozen, of_model.data())),
      check({.device = parts.ledger.on(MemoryClass::step),
             .group = parts.group,
             .ddp = ddp,
             .shards = parts.shards,
             .kernel = kernels::pick_variant(parts.kernels.gradient_statistics, parts.ledger.on(MemoryClass::step),
                                             kernels::DType::f32),
             .partial_sums = partial_sums},
            reducer->sums()) {
  const auto hold = [&](MemoryClass memory_class, std::size_t bytes) {
    held.push_back(parts.ledger.hold(memory_class, bytes));
  };
  hold(spec.precision == kernels::DType::f32 ? MemoryClass::master : MemoryClass::parameters, weights->bytes().whole);
  hold(MemoryClass::parameters, weights->bytes().slots);
  hold(MemoryClass::master, of_model.bytes());
  hold(MemoryClass::master, frozen.bytes());
  hold(MemoryClass::gradients, gradients.bytes());
  hold(MemoryClass::buckets, reducer->bytes().wire);
  hold(MemoryClass::step, check.bytes());
}

}  // namespace gradring::train
