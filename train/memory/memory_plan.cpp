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

}  // namespace

ProgramMemories plan_programs(const MemoryPlanSpec& spec, const MemoryPlanPlace& place) {
  kernels::PretendedDevice nowhere(place.device);
  const nn::Model model = model_of(spec, place);
  const ReplicaSpec& replica = spec.replica;
  const nn::Program training(model, replica.batch_size, nn::ProgramMode::training, place.backend, nowhere,
                             replica.precision, replica.checkpointing);
  const nn::Program evaluation(model, spec.eval_batch, nn::ProgramMode::evaluation, place.backend, nowhere,
                               replica.precision);
  return {training.memory(), evaluation.memory()};
}

MemoryTable plan_memory(const MemoryPlanSpec& spec, const MemoryPlanPlace& place, const ProgramMemories& programs) {
  kernels::PretendedDevice nowhere(place.device);
  MemoryLedger ledger(nowhere);
  const ReplicaSpec& replica = spec.replica;
  const nn::Model model = model_of(spec, place);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  const std::size_t arena_bytes = layout.elements() * sizeof(float);

  const kernels::Buffer master = ledger.on(MemoryClass::master).allocate(arena_bytes);
  const ComputeWeights weights({layout, master.as<float>()}, replica.precision, ledger.on(MemoryClass::parameters),
                               kernels::pick_variant(place.kernels.cast, nowhere, replica.precision));
  const auto sums = ledger.hold(MemoryClass::gradients, arena_bytes * (replica.accumulates ? 2 : 1));
  const auto buckets = ledger.hold(MemoryClass::buckets, GradientWire::memory_bytes(replica.wire, layout));
  const auto optimizer = make_optimizer(replica.optimizer, place.kernels, ledger.on(MemoryClass::optimizer), layout);
  plan_batches(spec, place, ledger.on(MemoryClass::batches));
  const auto step = ledger.hold(MemoryClass::step, TrainStep::memory_bytes(replica.learning_rates.size()));

  MemoryTable table = ledger.peaks();
  for (const nn::ProgramMemory& program : {programs.training, programs.evaluation}) {
    table[MemoryClass::activations] += program.activations + program.activation_gradients;
    table[MemoryClass::workspace] += program.workspace;
  }
  return table;
}

}  // namespace gradring::train
