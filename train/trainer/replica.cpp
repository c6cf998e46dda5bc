// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/replica.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/variant.h"
#include "nn/init/torch_uniform.h"
#include "train/checkpoint/error.h"
#include "train/checkpoint/parameter_tensors.h"
#include "train/checkpoint/tensor_differences.h"

namespace gradring::train {
namespace {

/// Shards of 64 bytes for every rank.
constexpr std::size_t kShardElements = 16;

std::size_t bytes_of(const nn::ArenaLayout& layout) { return layout.elements() * sizeof(float); }

template <class Part>
std::unique_ptr<Part> decorated(const std::function<std::unique_ptr<Part>(std::unique_ptr<Part>)>& decorate,
                                std::unique_ptr<Part> part) {
  return decorate ? decorate(std::move(part)) : std::move(part);
}

std::string prefix_of(const OptimizerState& state) { return state.name + "."; }

/// Errors    CheckpointError unless `tensors` are just what such an optimizer remembers.
void check_optimizer(std::span<const nn::Parameter> parameters, std::span<const OptimizerState> states,
                     std::span<const TensorRecord> tensors, const std::filesystem::path& from) {
  std::vector<TensorInfo> expected;
  for (const OptimizerState& state : states)
    std::ranges::move(parameter_tensors(parameters, prefix_of(state)), std::back_inserter(expected));
  const TensorDifferences differences = compare_tensors(expected, infos_of(tensors));
  if (!differences.none())
    throw CheckpointError(from, differences.to_string(), "it is of another --optimizer: name that one");
}

}  // namespace

nn::ArenaLayout replica_layout(const ReplicaSpec& spec, const nn::Model& model,
                               std::span<const nn::Parameter> parameters, int world_size) {
  return nn::ArenaLayout(parameters, make_buckets(parameters, nn::Program::ready_order(model), spec.buckets),
                         kShardElements * static_cast<std::size_t>(world_size), TrainStep::kRiders);
}

Replica::Replica(const ReplicaSpec& spec, const ReplicaPlace& place, const ReplicaDecorators& decorators)
    : device_(place.device),
      group_(place.group),
      memory_(place.device),
      model_(nn::make_model(spec.model, place.sample, place.classes)),
      parameters_(nn::parameters_of(model_)),
      layout_(replica_layout(spec, model_, parameters_, place.group.world_size())),
      weight_memory_(memory_.on(MemoryClass::master).allocate(bytes_of(layout_))),
      gradient_memory_(place.group.allocate(bytes_of(layout_))),
      gradient_bytes_(memory_.hold(MemoryClass::gradients, gradient_memory_->size())),
      master_{layout_, weight_memory_.as<float>()},
      gradients_{layout_, gradient_memory_->as<float>()},
      weights_(master_, spec.precision, memory_.on(MemoryClass::parameters),
               kernels::pick_variant(place.kernels.cast, place.device, spec.precision)),
      program_(model_, spec.batch_size, nn::ProgramMode::training, place.backend, memory_.for_program(), spec.precision,
               spec.checkpointing),
      optimizer_(decorated(decorators.optimizer,
                           make_optimizer(spec.optimizer, place.kernels, memory_.on(MemoryClass::optimizer), layout_))),
      stream_(decorated(decorators.stream, place.device.make_stream(kernels::StreamMode::in_place))),
      wire_(spec.wire, place.group, *gradient_memory_, layout_,
            kernels::pick_variant(place.kernels.cast, place.device, spec.wire.dtype)),
      wire_bytes_(memory_.hold(MemoryClass::buckets, GradientWire::memory_bytes(spec.wire, layout_))),
      ddp_(place.group, *gradient_memory_, wire_, layout_, place.device, *stream_,
           spec.overlap ? kernels::StreamMode::asynchronous : kernels::StreamMode::in_place),
      accumulation_({.device = memory_.on(MemoryClass::gradients),
                     .stream = *stream_,
                     .sums = gradients_,
                     .next = ddp_,
                     .accumulate = kernels::pick_variant(place.kernels.accumulate, place.device, kernels::DType::f32)},
                    spec.accumulates),
      step_({.device = memory_.on(MemoryClass::step),
             .stream = *stream_,
             .kernels = place.kernels,
             .program = program_,
             .master = master_,
             .weights = weights_,
             .gradients = gradients_,
             .ddp = ddp_,
             .accumulation = accumulation_,
             .optimizer = *optimizer_,
             .loss_scaling = spec.loss_scaling,
             .learning_rates = spec.learning_rates,
             .clip_norm = spec.clip_norm,
             .recorded = spec.recorded}) {
  draw_weights(spec.seed, Deadline::after(place.group.timeout()));
  ddp_.broadcast(master_);
  weights_.enqueue_refresh(*stream_);
}

void Replica::draw_weights(std::uint64_t seed, Deadline deadline) {
  const kernels::Buffer host = device_.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  const nn::Arena arena{layout_, host.as<float>()};
  const auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i], {arena.parameter(static_cast<int>(i)), drawn[i].size()});
  stream_->enqueue_copy(master_.data, host.data(), host.size());
  stream_->synchronize(deadline);
}

kernels::Buffer Replica::on_host(const float* arena, Deadline deadline) {
  kernels::Buffer host = device_.allocate(bytes_of(layout_), kernels::MemoryKind::pinned);
  stream_->enqueue_copy(host.data(), arena, host.size());
  stream_->synchronize(deadline);
  return host;
}

ReplicaState Replica::save(Deadline deadline) {
  ReplicaState saved{.model = {}, .state = {}, .step = step_.state(deadline)};
  const auto records_of = [&](const float* arena, std::string_view prefix) {
    const kernels::Buffer host = on_host(arena, deadline);
    return save_parameters(parameters_, {layout_, host.as<float>()}, prefix);
  };
  saved.model = records_of(master_.data, "");
  for (const OptimizerState& state : optimizer_->states())
    std::ranges::move(records_of(state.data, prefix_of(state)), std::back_inserter(saved.state));
  return saved;
}

void Replica::load(const ReplicaState& state, const std::filesystem::path& from, Deadline deadline) {
  const std::vector<OptimizerState> optimizer = optimizer_->states();
  const bool reads = group_.rank() == 0;
  if (reads) check_optimizer(parameters_, optimizer, state.state, from);
  load_weights(state.model, from, deadline);
  for (const OptimizerState& each : optimizer) load_arena(each.data, state.state, from, prefix_of(each), deadline);
  step_.set_state(state.step, deadline);
}

void Replica::load_weights(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from,
                           Deadline deadline) {
  load_arena(master_.data, of_rank_0, from, "", deadline);
  weights_.enqueue_refresh(*stream_);
}

/// Fills an arena on every rank from the tensors that rank 0 has.
void Replica::load_arena(float* arena, std::span<const TensorRecord> tensors, const std::filesystem::path& from,
                         std::string_view prefix, Deadline deadline) {
  if (group_.rank() == 0) {
    const kernels::Buffer host = on_host(arena, deadline);  // what lies between parameters stays
    load_parameters(tensors, from, parameters_, {layout_, host.as<float>()}, prefix);
    stream_->enqueue_copy(arena, host.data(), host.size());
    stream_->synchronize(deadline);
  }
  ddp_.broadcast({layout_, arena});
}

}  // namespace gradring::train
