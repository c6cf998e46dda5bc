// SPDX-License-Identifier: Apache-2.0
#include "train/memory/memory_plan.h"

#include "kernels/runtime/pretended_device.h"
#include "kernels/variant.h"
#include "train/feed/loaded_batch.h"
#include "train/feed/loader_feed.h"
#include "train/feed/resident_feed.h"

namespace gradring::train {
namespace {

/// Nothing waits on such a device.
constexpr std::chrono::seconds kPatience{1};

nn::Model model_of(const MemoryPlanSpec& spec, const MemoryPlanPlace& place) {
  return nn::make_model(spec.replica.model, place.train_set.shape(), place.train_set.classes());
}

/// What a step's samples need; evaluation's come through the loader in any case.
void plan_batches(const MemoryPlanSpec& spec, const MemoryPlanPlace& place, kernels::Device& device) {
  const ReplicaSpec& replica = spec.replica;
  const LoadedBatch evaluation(device, place.kernels, place.train_set.shape(), spec.eval_batch, replica.precision);
  const FeedSpec feed{.dataset = place.train_set,
                      .device = device,
                      .kernels = place.kernels,
                      .batch_size = replica.batch_size,
                      .dtype = replica.precision};
  if (spec.resident)
    const ResidentFeed training(feed, *device.make_stream(kernels::StreamMode::in_place), Deadline::after(kPatience));
  else
    const LoaderFeed training(feed);
}

/// Of weights: whole, or shards of them (ZeRO).
MemoryTable plan_weights(const ReplicaSpec& replica, const Shards& shards, int places) {
  MemoryTable table;
  const bool rounded = replica.precision != kernels::DType::f32;
  if (rounded || replica.zero >= 3) table[MemoryClass::master] = shards.elements() * sizeof(float);
  const BucketMemorySpec read{.dtype = replica.precision, .places = replica.zero >= 3 ? places : 0};
  const bool beside = rounded || replica.zero >= 3;
  table[beside ? MemoryClass::parameters : MemoryClass::master] += BucketMemory::bytes_of(read, shards.layout());
  if (replica.optimizer.ema > 0 && !averages_are_read_in_place(shards, replica.precision))
    table[MemoryClass::parameters] += BucketMemory::bytes_of({.dtype = replica.precision}, shards.layout());
  return table;
}

/// Of gradients: where backward writes them, where passes are summed and where they are collected, and what travels.
void plan_gradients(const ReplicaSpec& replica, const Shards& shards, int places, MemoryTable& table) {
  const nn::ArenaLayout& layout = shards.layout();
  const int taking_turns = replica.zero >= 2 ? places : 0;
  std::size_t& gradients = table[MemoryClass::gradients];
  gradients = BucketMemory::bytes_of({.places = taking_turns}, layout);
  const bool exact = replica.exact_terms > 0;
  if (replica.zero >= 2) gradients += shards.elements() * sizeof(float);
  if (replica.zero >= 2)
    gradients += exact ? shards.elements() * sizeof(std::int64_t) : layout.riders().elements * sizeof(float);
  if (sums_passes_first(replica)) gradients += layout.elements() * sizeof(float);
  if (replica.wire.dtype != kernels::DType::f32)
    table[MemoryClass::buckets] = BucketMemory::bytes_of({.dtype = replica.wire.dtype, .places = taking_turns}, layout);
  if (exact)
    table[MemoryClass::buckets] +=
        BucketMemory::bytes_of({.dtype = kernels::DType::i64, .places = taking_turns}, layout) +
        ExactRounding::bytes_needed(layout.parameters());
  table[MemoryClass::step] = GradientSearch::bytes_of(layout) + sizeof(float);
}

}  // namespace

ProgramMemories plan_programs(const MemoryPlanSpec& spec, const MemoryPlanPlace& place) {
  kernels::PretendedDevice nowhere(place.device);
  const nn::Model model = model_of(spec, place);
  const ReplicaSpec& replica = spec.replica;
  const nn::Program training(model, replica.batch_size, nn::ProgramMode::training, place.backend, nowhere,
                             replica.precision, replica.checkpointing);
  const nn::Program evaluation(model, spec.eval_batch, nn::ProgramMode::evaluation, place.backend, nowhere,
                               replica.precision);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  return {training.memory(), evaluation.memory(), places_for(layout, training)};
}

MemoryTable plan_memory(const MemoryPlanSpec& spec, const MemoryPlanPlace& place, const ProgramMemories& programs) {
  kernels::PretendedDevice nowhere(place.device);
  MemoryLedger ledger(nowhere);
  const ReplicaSpec& replica = spec.replica;
  const nn::Model model = model_of(spec, place);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  const Shards shards(layout, replica.zero > 0 ? spec.world_size : 1, 0);
  MemoryTable table = plan_weights(replica, shards, programs.places);
  plan_gradients(replica, shards, programs.places, table);
  const auto optimizer =
      make_optimizer(replica.optimizer, place.kernels, ledger.on(MemoryClass::optimizer), shards.elements());
  plan_batches(spec, place, ledger.on(MemoryClass::batches));
  const auto step = ledger.hold(MemoryClass::step, TrainStep::memory_bytes(replica.learning_rates.size()));
  const MemoryTable counted = ledger.peaks();
  for (const MemoryClass memory_class : all_memory_classes()) table[memory_class] += counted[memory_class];
  for (const nn::ProgramMemory& program : {programs.training, programs.evaluation}) {
    table[MemoryClass::activations] += program.activations + program.activation_gradients;
    table[MemoryClass::workspace] += program.workspace;
  }
  return table;
}

}  // namespace gradring::train
