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
#include "train/parallel/update_slices.h"
#include "train/precision/gather_bucket.h"
#include "train/precision/gathered_weights.h"
#include "train/precision/prefetched_weights.h"

namespace gradring::train {
namespace {

/// What a rank's shard of a bucket is a multiple of: so it is a whole number of the blocks that are searched by themselves.
constexpr std::size_t kShardElements = kernels::sum_of_squares::kBlock;

Shards shards_for(int zero, const nn::ArenaLayout& layout, const comm::ProcessGroup& group) {
  return zero > 0 ? Shards(layout, group.world_size(), group.rank()) : Shards(layout, 1, 0);
}

ReplicaGradientsSpec gradients_for(const ReplicaSpec& spec, const nn::ArenaLayout& layout, const nn::Program& program) {
  return {.sharded = spec.zero >= 2,
          .places = places_for(layout, program),
          .wire = spec.wire,
          .sums_passes_first = sums_passes_first(spec),
          .exact_terms = spec.exact_terms,
          .overlap = spec.overlap};
}

std::unique_ptr<ComputeWeights> make_weights(const ReplicaSpec& spec, const ReplicaPlace& place,
                                             kernels::Device& device, const Shards& shards, const nn::Program& program,
                                             DistributedDataParallel& ddp, const kernels::cast::Variant& cast) {
  if (spec.zero < 3)
    return std::make_unique<GatheredWeights>(
        GatheredWeights::Parts{.device = device, .group = place.group, .shards = shards, .cast = cast}, spec.precision);
  return std::make_unique<PrefetchedWeights>(
      PrefetchedWeights::Parts{.device = device, .group = place.group, .ddp = ddp, .shards = shards, .cast = cast},
      spec.precision, places_for(shards.layout(), program));
}

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
    throw CheckpointError(from, differences.to_string(),
                          "it is of another --optimizer, or one has --ema and the other not: name those of its run");
}

}  // namespace

nn::ArenaLayout replica_layout(const ReplicaSpec& spec, const nn::Model& model,
                               std::span<const nn::Parameter> parameters, int world_size) {
  return nn::ArenaLayout(parameters, make_buckets(parameters, nn::Program::ready_order(model), spec.buckets),
                         kShardElements * static_cast<std::size_t>(world_size), TrainStep::kRiders);
}

bool averages_are_read_in_place(const Shards& shards, kernels::DType dtype) {
  return shards.whole() && dtype == kernels::DType::f32;
}

bool sums_passes_first(const ReplicaSpec& spec) {
  return spec.accumulates && spec.exact_terms == 0 && !(spec.zero >= 2 && spec.sync_every_pass);
}

int places_for(const nn::ArenaLayout& layout, const nn::Program& program) {
  return buckets_at_once(layout, program.parameters_of_plans()) + 1;
}

Replica::Replica(const ReplicaSpec& spec, const ReplicaPlace& place, const ReplicaDecorators& decorators)
    : device_(place.device),
      group_(place.group),
      memory_(place.device),
      model_(nn::make_model(spec.model, place.sample, place.classes)),
      parameters_(nn::parameters_of(model_)),
      layout_(replica_layout(spec, model_, parameters_, place.group.world_size())),
      shards_(shards_for(spec.zero, layout_, place.group)),
      cast_(kernels::pick_variant(place.kernels.cast, place.device, spec.precision)),
      program_(model_, spec.batch_size, nn::ProgramMode::training, place.backend, memory_.for_program(), spec.precision,
               spec.checkpointing),
      optimizer_(decorated(
          decorators.optimizer,
          make_optimizer(spec.optimizer, place.kernels, memory_.on(MemoryClass::optimizer), shards_.elements()))),
      stream_(decorated(decorators.stream, place.device.make_stream(kernels::StreamMode::in_place))),
      gradients_(gradients_for(spec, layout_, program_), {.device = memory_.on(MemoryClass::gradients),
                                                          .kernels = place.kernels,
                                                          .group = place.group,
                                                          .stream = *stream_,
                                                          .shards = shards_}),
      weights_(make_weights(spec, place, memory_.on(MemoryClass::master), shards_, program_, gradients_.ddp(), cast_)),
      slices_(update_slices(shards_, *weights_, gradients_.sums(), decaying(parameters_, spec.optimizer))),
      transfer_({.device = place.device,
                 .group = place.group,
                 .stream = *stream_,
                 .staging = gradients_.memory(),
                 .shards = shards_}),
      search_({.device = memory_.on(MemoryClass::step),
               .group = place.group,
               .ddp = gradients_.ddp(),
               .shards = shards_,
               .kernel = kernels::pick_variant(place.kernels.sum_of_squares, place.device, kernels::DType::f32)},
              gradients_.sums()),
      step_({.device = memory_.on(MemoryClass::step),
             .stream = *stream_,
             .kernels = place.kernels,
             .program = program_,
             .weights = *weights_,
             .ddp = gradients_.ddp(),
             .path = gradients_.path(),
             .loss_sum = gradients_.riders(),
             .search = search_,
             .optimizer = *optimizer_,
             .slices = slices_,
             .loss_scaling = spec.loss_scaling,
             .learning_rates = spec.learning_rates,
             .clip_norm = spec.clip_norm,
             .searches = spec.searches_gradients,
             .recorded = spec.recorded}) {
  hold_transport_memory(spec.precision);
  draw_weights(spec.seed, Deadline::after(place.group.timeout()));
}

/// The transport allocates what ranks reach of each other.
void Replica::hold_transport_memory(kernels::DType precision) {
  const auto hold = [this](MemoryClass memory_class, std::size_t bytes) {
    held_.push_back(memory_.hold(memory_class, bytes));
  };
  const WeightBytes weights = weights_->bytes();
  hold(precision == kernels::DType::f32 ? MemoryClass::master : MemoryClass::parameters, weights.whole);
  hold(MemoryClass::parameters, weights.places);
  hold(MemoryClass::gradients, gradients_.memory().bytes());
  hold(MemoryClass::buckets, gradients_.wire_bytes());
  hold(MemoryClass::step, search_.bytes());
}

/// A zeroed arena in pinned memory.
kernels::Buffer Replica::host_arena() {
  kernels::Buffer host = device_.allocate(layout_.elements() * sizeof(float), kernels::MemoryKind::pinned);
  std::fill_n(host.as<float>(), layout_.elements(), 0.0f);
  return host;
}

void Replica::draw_weights(std::uint64_t seed, Deadline deadline) {
  const kernels::Buffer host = host_arena();
  const nn::Arena arena{layout_, host.as<float>()};
  const auto drawn = nn::draw_torch_uniform(parameters_, seed);
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    nn::from_torch_order(parameters_[i], drawn[i], {arena.parameter(static_cast<int>(i)), drawn[i].size()});
  transfer_.scatter(host.as<float>(), weights_->master(), deadline);
  enqueue_begin();
}

/// Once the weights that are trained were drawn or loaded.
void Replica::enqueue_begin() {
  weights_->enqueue_refresh(*stream_);
  optimizer_->enqueue_begin(*stream_, slices_);
}

kernels::Buffer Replica::weights_on_host(Deadline deadline) {
  const float* const whole = weights_->whole_master();
  if (!whole) return transfer_.gather(weights_->master(), deadline);
  kernels::Buffer host = device_.allocate(layout_.elements() * sizeof(float), kernels::MemoryKind::pinned);
  stream_->enqueue_copy(host.data(), whole, host.size());
  stream_->synchronize(deadline);
  return host;
}

WholeWeights Replica::whole_weights() {
  WholeWeights whole{.memory = weights_->gather_whole(*stream_), .view = weights_->view(), .counted = {}};
  if (whole.memory) whole.view.buckets = weights_within(*whole.memory).buckets;
  return whole;
}

std::optional<WholeWeights> Replica::averaged_weights() {
  const std::vector<OptimizerState> states = optimizer_->states();
  const auto found = std::ranges::find(states, kEmaState, &OptimizerState::name);
  if (found == states.end()) return std::nullopt;
  if (averages_are_read_in_place(shards_, program_.dtype()))
    return WholeWeights{
        .memory = nullptr, .view = nn::weights_at(layout_, kernels::DType::f32, found->data), .counted = {}};
  auto memory =
      gather_whole({.group = group_, .shards = shards_, .cast = cast_}, shards_of(*found), program_.dtype(), *stream_);
  auto counted = memory_.hold(MemoryClass::parameters, memory->bytes());
  const nn::Weights view = weights_within(*memory);
  return WholeWeights{.memory = std::move(memory), .view = view, .counted = std::move(counted)};
}

ReplicaBytes Replica::bytes() const {
  return {.weights = weights_->bytes(),
          .gradients = gradients_.sum_bytes(),
          .gradient_places = gradients_.place_bytes(),
          .wire = gradients_.wire_bytes(),
          .optimizer = optimizer_->bytes()};
}

std::vector<TensorRecord> Replica::records_of(const kernels::Buffer& host, std::string_view prefix) const {
  if (group_.rank() != 0) return {};
  return save_parameters(parameters_, {layout_, host.as<float>()}, prefix);
}

ReplicaState Replica::save(Deadline deadline) {
  ReplicaState saved{.model = {}, .state = {}, .step = step_.state(deadline)};
  saved.model = records_of(weights_on_host(deadline), "");
  for (const OptimizerState& state : optimizer_->states())
    std::ranges::move(records_of(transfer_.gather(shards_of(state), deadline), prefix_of(state)),
                      std::back_inserter(saved.state));
  return saved;
}

void Replica::load(const ReplicaState& state, const std::filesystem::path& from, Deadline deadline) {
  const std::vector<OptimizerState> optimizer = optimizer_->states();
  const bool reads = group_.rank() == 0;
  if (reads) check_optimizer(parameters_, optimizer, state.state, from);
  load_weights(state.model, from, deadline);
  for (const OptimizerState& each : optimizer)
    load_shards(shards_of(each), state.state, from, prefix_of(each), deadline);
  step_.set_state(state.step, deadline);
}

void Replica::load_weights(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from,
                           Deadline deadline) {
  load_shards(weights_->master(), of_rank_0, from, "", deadline);
  enqueue_begin();
}

/// Fills shards on every rank from the tensors that rank 0 has.
void Replica::load_shards(const ShardPointers& to, std::span<const TensorRecord> tensors,
                          const std::filesystem::path& from, std::string_view prefix, Deadline deadline) {
  const kernels::Buffer host = host_arena();
  if (group_.rank() == 0) load_parameters(tensors, from, parameters_, {layout_, host.as<float>()}, prefix);
  transfer_.scatter(host.as<float>(), to, deadline);
}

}  // namespace gradring::train
