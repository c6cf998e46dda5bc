// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/replica.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/lib/variant.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

template <class Part>
std::unique_ptr<Part> decorated(const std::function<std::unique_ptr<Part>(std::unique_ptr<Part>)>& decorate,
                                std::unique_ptr<Part> part) {
  return decorate ? decorate(std::move(part)) : std::move(part);
}

/// The parameters, named as the tensors of a state: "exp_avg.conv1.weight"; without a name where a group has no such
/// state.
std::vector<nn::Parameter> named_after(const OptimizerState& state, std::span<const nn::Parameter> parameters,
                                       const ParameterGroups& groups) {
  std::vector<nn::Parameter> named(parameters.begin(), parameters.end());
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string& name = state.names[static_cast<std::size_t>(groups.of_parameter[i])];
    named[i].name = name.empty() || named[i].frozen ? "" : name + "." + named[i].name;
  }
  return named;
}

/// Errors    CheckpointError unless `tensors` are exactly those of the states.
void check_optimizer(std::span<const std::vector<nn::Parameter>> states, std::span<const TensorRecord> tensors,
                     const std::filesystem::path& from) {
  std::vector<TensorInfo> expected;
  for (const std::vector<nn::Parameter>& state : states)
    std::ranges::move(parameter_tensors(state), std::back_inserter(expected));
  const TensorDifferences differences = compare_tensors(expected, infos_of(tensors));
  if (!differences.empty())
    throw CheckpointError(from, differences.to_string(),
                          "use the --optimizer, --momentum, --group and --ema of the run that saved it");
}

/// The tensors of `tensors` that `named` names.
std::vector<TensorRecord> records_in(std::span<const TensorRecord> tensors, std::span<const nn::Parameter> named) {
  std::vector<TensorRecord> found;
  std::ranges::copy_if(tensors, std::back_inserter(found), [&](const TensorRecord& tensor) {
    return std::ranges::find(named, tensor.name, &nn::Parameter::name) != named.end();
  });
  return found;
}

}  // namespace

Replica::Replica(const ReplicaSpec& spec, const ReplicaWorld& world, const ReplicaDecorators& decorators)
    : device_(world.device),
      group_(world.group),
      memory_(world.device),
      model_(replica_model(spec, world.sample, world.classes)),
      parameters_(nn::parameters_of(model_)),
      groups_(parameter_groups(parameters_, spec.optimizer)),
      layout_(replica_layout(spec, model_, parameters_, world.group.world_size())),
      shards_(replica_shards(spec.zero, layout_, world.group.world_size(), world.group.rank())),
      cast_(kernels::pick_variant(world.kernels.cast, world.device, spec.precision)),
      sync_batch_norm_(spec.sync_batch_norm),
      statistics_(world.group, spec.shards),
      program_(model_, spec.batch_of_device(), nn::ProgramMode::training, world.backend,
               {memory_.on(MemoryClass::activations), memory_.on(MemoryClass::workspace)}, spec.precision,
               spec.checkpointing, spec.sync_batch_norm ? &statistics_ : nullptr,
               most_partial_sum_bytes(spec, world.device)),
      stream_(decorated(decorators.stream, world.device.make_stream(kernels::StreamMode::in_place))),
      buffers_(spec, {.kernels = world.kernels,
                      .group = world.group,
                      .ledger = memory_,
                      .stream = *stream_,
                      .shards = shards_,
                      .model = model_,
                      .slots = slots_for(layout_, program_)}),
      matrices_(weight_matrices(parameters_, groups_, layout_)),
      gathered_(matrices_, world.group, shards_, buffers_.ddp),
      optimizer_(
          decorated(decorators.optimizer,
                    make_optimizer(groups_.groups, spec.optimizer.ema, muon_parts(spec.optimizer, matrices_, gathered_),
                                   world.kernels, memory_.on(MemoryClass::optimizer), shards_.elements()))),
      slices_(update_slices(shards_, *buffers_.weights, buffers_.reducer->sums(),
                            {.group = groups_.of_parameter, .matrix = matrices_.of_parameter})),
      transfer_({.device = world.device,
                 .group = world.group,
                 .stream = *stream_,
                 .staging = buffers_.gradients,
                 .shards = shards_}),
      data_parallel_(make_data_parallel(spec, world)),
      step_(for_groups(spec.step, groups_),
            {.device = memory_.on(MemoryClass::step),
             .stream = *stream_,
             .kernels = world.kernels,
             .program = data_parallel_ ? static_cast<nn::StepProgram&>(*data_parallel_) : program_,
             .weights = *buffers_.weights,
             .ddp = buffers_.ddp,
             .reducer = *buffers_.reducer,
             .check = buffers_.check,
             .optimizer = *optimizer_,
             .slices = slices_}) {
  statistics_.connect(memory_.on(MemoryClass::step), buffers_.ddp);
  buffers_.held.push_back(memory_.hold(MemoryClass::step, statistics_.bytes()));
  buffers_.held.push_back(memory_.hold(MemoryClass::optimizer, gathered_.bytes()));
  initialize_weights(spec.seed, {}, world.group.after_collectives());
}

std::unique_ptr<DataParallel> Replica::make_data_parallel(const ReplicaSpec& spec, const ReplicaWorld& world) {
  check(std::ssize(world.others) + 1 == spec.devices, "the number of devices is not that of the replica");
  if (spec.devices == 1) return nullptr;
  return std::make_unique<DataParallel>(
      DeviceReplicaSpec{.model = model_,
                        .layout = layout_,
                        .sample = world.sample,
                        .max_batch = spec.batch_of_device(),
                        .dtype = spec.precision,
                        .checkpointing = spec.checkpointing},
      DataParallel::First{.device = memory_.on(MemoryClass::gradients),
                          .kernels = world.kernels,
                          .program = program_,
                          .enqueue_exposed = [this](const auto& work) { buffers_.ddp.enqueue_in_line(work); }},
      world.others);
}

/// Zeroed memory of all weights, pinned.
kernels::Buffer Replica::host_weights() {
  const std::size_t elements = layout_.elements() + layout_.frozen_elements();
  kernels::Buffer host = device_.allocate(elements * sizeof(float), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), elements, 0.0f);
  return host;
}

/// To all ranks.
void Replica::copy_to_all(const kernels::Buffer& weights_of_rank_0, Deadline deadline) {
  const nn::Arena arena = nn::weights_arena(layout_, weights_of_rank_0.as<float>());
  transfer_.scatter(arena.data, buffers_.weights->master(), deadline);
  buffers_.frozen.load(arena.frozen, deadline);
}

void Replica::initialize_weights(std::uint64_t seed, const std::map<std::size_t, std::vector<float>>& given,
                                 Deadline deadline) {
  const kernels::Buffer host = host_weights();
  const nn::Arena arena = nn::weights_arena(layout_, host.as<float>());
  auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (const auto& [index, values] : given) drawn.at(index) = values;
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i], {arena.parameter(static_cast<int>(i)), drawn[i].size()});
  copy_to_all(host, deadline);
  buffers_.of_model.initialize(deadline);
  enqueue_begin();
}

/// To be called after master weights were initialized or loaded.
void Replica::enqueue_begin() {
  buffers_.weights->enqueue_refresh(*stream_);
  optimizer_->enqueue_begin(*stream_, slices_);
}

kernels::Buffer Replica::weights_on_host(Deadline deadline) {
  kernels::Buffer host = host_weights();
  const nn::Arena arena = nn::weights_arena(layout_, host.as<float>());
  if (const float* const whole = buffers_.weights->whole_master())
    stream_->enqueue_copy(arena.data, whole, layout_.elements() * sizeof(float));
  else
    transfer_.gather(buffers_.weights->master(), arena.data, deadline);
  buffers_.frozen.copy_to(arena.frozen, deadline);
  stream_->synchronize(deadline);
  return host;
}

WholeWeights Replica::whole_weights() {
  buffers_.of_model.synchronize(group_.after_collectives());
  WholeWeights whole{
      .memory = buffers_.weights->gather_whole(*stream_), .view = buffers_.weights->view(), .counted = {}};
  if (whole.memory) whole.view.buckets = weights_within(*whole.memory).buckets;
  return whole;
}

/// Weights that are read together with frozen ones and rank 0's buffers.
WholeWeights Replica::with_buffers(WholeWeights weights) {
  buffers_.of_model.synchronize(group_.after_collectives());
  weights.view.frozen = buffers_.frozen.data();
  weights.view.buffers = buffers_.of_model.data();
  return weights;
}

std::optional<WholeWeights> Replica::averaged_weights() {
  const std::vector<OptimizerState> states = optimizer_->states();
  const auto found =
      std::ranges::find_if(states, [](const OptimizerState& state) { return state.names.front() == kEmaState; });
  if (found == states.end()) return std::nullopt;
  if (averages_are_read_in_place(shards_, program_.dtype()))
    return with_buffers(
        {.memory = nullptr, .view = nn::weights_at(layout_, kernels::DType::f32, found->data), .counted = {}});
  auto memory = gather_whole({.device = device_, .group = group_, .shards = shards_, .cast = cast_}, shards_of(*found),
                             program_.dtype(), *stream_);
  auto counted = memory_.hold(MemoryClass::parameters, memory->bytes());
  const nn::Weights view = weights_within(*memory);
  return with_buffers({.memory = std::move(memory), .view = view, .counted = std::move(counted)});
}

ReplicaBytes Replica::bytes() const {
  const ReducerBytes reducer = buffers_.reducer->bytes();
  return {.weights = buffers_.weights->bytes(),
          .gradients = reducer.sums > 0 ? reducer.sums : buffers_.gradients.bytes(),
          .gradient_slots = reducer.sums > 0 ? buffers_.gradients.bytes() : 0,
          .wire = reducer.wire,
          .optimizer = optimizer_->bytes()};
}

std::vector<TensorRecord> Replica::records_of(std::span<const nn::Parameter> named, const nn::Arena& host) const {
  if (group_.rank() != 0) return {};
  return save_parameters(named, host);
}

ReplicaState Replica::save(Deadline deadline) {
  ReplicaState saved{.model = {}, .state = {}, .step = step_.state(deadline)};
  {
    const kernels::Buffer weights = weights_on_host(deadline);
    saved.model = records_of(parameters_, nn::weights_arena(layout_, weights.as<float>()));
  }
  if (group_.rank() == 0)
    std::ranges::move(
        save_parameters(buffers_.of_model.tensors(), buffers_.of_model.arena(buffers_.of_model.on_host(deadline))),
        std::back_inserter(saved.model));
  for (const OptimizerState& state : optimizer_->states()) {
    const kernels::Buffer whole = transfer_.gather(shards_of(state), deadline);
    std::ranges::move(records_of(named_after(state, parameters_, groups_), {layout_, whole.as<float>()}),
                      std::back_inserter(saved.state));
  }
  return saved;
}

void Replica::load(const ReplicaState& state, const std::filesystem::path& from, Deadline deadline) {
  const std::vector<OptimizerState> optimizer = optimizer_->states();
  load_weights(state.model, from, deadline);  // first: those of another model have another optimizer's state, too
  std::vector<std::vector<nn::Parameter>> named;
  for (const OptimizerState& each : optimizer) named.push_back(named_after(each, parameters_, groups_));
  if (group_.rank() == 0) check_optimizer(named, state.state, from);
  check_optimizer_values(state.state, from);
  for (std::size_t i = 0; i < optimizer.size(); ++i) {
    const kernels::Buffer host = host_weights();
    const nn::Arena arena{layout_, host.as<float>()};
    if (group_.rank() == 0) load_parameters(records_in(state.state, named[i]), from, named[i], arena);
    transfer_.scatter(arena.data, shards_of(optimizer[i]), deadline);
  }
  step_.set_state(state.step, deadline);
}

void Replica::load_weights(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from,
                           Deadline deadline) {
  check_finite_weights(of_rank_0, from);
  const SplitRecords split = split_records(of_rank_0, buffers_.of_model.tensors());
  const kernels::Buffer host = host_weights();
  if (group_.rank() == 0) load_parameters(split.first, from, parameters_, nn::weights_arena(layout_, host.as<float>()));
  copy_to_all(host, deadline);
  buffers_.of_model.load(split.others, from, deadline);
  enqueue_begin();
}

Sha256 Replica::hash(Deadline deadline) {
  Sha256Sum sum;
  const kernels::Buffer weights = weights_on_host(deadline);
  add_to_hash(sum, parameters_, nn::weights_arena(layout_, weights.as<float>()));
  ModelBuffers& buffers = buffers_.of_model;
  if (!sync_batch_norm_) buffers.synchronize(deadline);
  add_to_hash(sum, buffers.tensors(), buffers.arena(buffers.on_host(deadline)));
  return sum.finish();
}

}  // namespace gradring::train
