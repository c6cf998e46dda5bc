// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/memory_plan.h"

#include <chrono>
#include <optional>
#include <utility>

#include "kernels/runtime/dry_run_device.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/resident_evaluation.h"

namespace gradring::train {
namespace {

constexpr std::chrono::seconds kTimeout{1};  // never reached: nothing waits on a dry-run device

/// Rank 0 of a world that does not exist: allocates on a dry-run device, and drops collectives.
class DryRunTransport final : public comm::Transport {
 public:
  DryRunTransport(kernels::Device& device, int world_size) : device_(device), world_size_(world_size) {}

  int rank() const override { return 0; }
  int world_size() const override { return world_size_; }
  std::unique_ptr<comm::Segment> allocate(std::size_t bytes, Deadline) override {
    kernels::Buffer memory = device_.allocate(bytes, kernels::MemoryKind::device);
    auto* const data = memory.as<std::byte>();
    return std::make_unique<comm::OwnSegment<kernels::Buffer>>(data, std::move(memory), bytes, ++segments_);
  }
  void submit(kernels::Stream&, std::function<void()>) override {}
  void enqueue(const comm::Step&) override {}
  comm::Progress poll() override { return comm::Progress::done; }
  void wait(Deadline) override {}
  void share_failure(comm::FirstFailure&) override {}

 private:
  kernels::Device& device_;
  int world_size_;
  std::uint64_t segments_ = 0;
};

comm::ProcessGroup dry_run_group(kernels::Device& device, int world_size) {
  return {std::make_unique<DryRunTransport>(device, world_size), std::make_unique<DryRunTransport>(device, world_size),
          kTimeout};
}

nn::Model model_of(const MemoryPlanSpec& spec, const MemoryPlanWorld& world) {
  return replica_model(spec.replica, world.train_set.shape(), world.train_set.classes());
}

/// Allocates what the batches of training and evaluation need.
void plan_batches(const MemoryPlanSpec& spec, const MemoryPlanWorld& world, const ProgramMemories& programs,
                  const comm::ProcessGroup& group, kernels::Device& device) {
  const ReplicaSpec& replica = spec.replica;
  const BatchLoaderSpec training{.dataset = world.train_set,
                                 .device = device,
                                 .kernels = world.kernels,
                                 .batch_size = replica.batch_size,
                                 .dtype = replica.precision,
                                 .keeps_f32 = replica.devices == 1 && programs.reads_f32,
                                 .augment = spec.augment,
                                 .repeats_samples = spec.repeats_samples};
  const BatchLoaderSpec evaluation{.dataset = world.evaluated,
                                   .device = device,
                                   .kernels = world.kernels,
                                   .batch_size = spec.eval_batch,
                                   .dtype = replica.precision};
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  std::optional<HostBatchLoader> copied;
  if (!spec.resident || spec.copies_evaluations) copied.emplace(evaluation);
  if (!spec.resident) {
    const HostBatchLoader loader(training);
    return;
  }
  const ResidentBatchLoader loader(training, *stream, Deadline::after(kTimeout));
  const ResidentShard shard(evaluation, group, *stream, Deadline::after(kTimeout));
  const kernels::Buffer sums = device.allocate(evaluation_sums_bytes(world.evaluated.classes()));
}

/// What Replica::averaged_weights allocates for an evaluation.
std::size_t averaged_weight_bytes(const ReplicaSpec& replica, const Shards& shards) {
  if (replica.optimizer.ema == 0 || averages_are_read_in_place(shards, replica.precision)) return 0;
  return shards.layout().elements() * kernels::size_of(replica.precision);
}

}  // namespace

ProgramMemories plan_programs(const MemoryPlanSpec& spec, const MemoryPlanWorld& world) {
  kernels::DryRunDevice device(world.device);
  const nn::Model model = model_of(spec, world);
  const ReplicaSpec& replica = spec.replica;
  comm::ProcessGroup group = dry_run_group(device, spec.world_size);
  GatheredStatistics statistics(group, replica.shards);
  const nn::Program training(model, replica.batch_of_device(), nn::ProgramMode::training, world.backend, device,
                             replica.precision, replica.checkpointing, replica.sync_batch_norm ? &statistics : nullptr,
                             most_partial_sum_bytes(replica, device));
  const nn::Program evaluation(model, spec.eval_batch, nn::ProgramMode::evaluation, world.backend, device,
                               replica.precision);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  return {training.memory(), evaluation.memory(), slots_for(layout, training), statistics.bytes(),
          training.reads_f32()};
}

MemoryTable plan_memory(const MemoryPlanSpec& spec, const MemoryPlanWorld& world, const ProgramMemories& programs) {
  kernels::DryRunDevice device(world.device);
  MemoryLedger ledger(device);
  comm::ProcessGroup group = dry_run_group(device, spec.world_size);
  const ReplicaSpec& replica = spec.replica;
  const nn::Model model = model_of(spec, world);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  const Shards shards = replica_shards(replica.zero, layout, spec.world_size, 0);
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const ParameterGroups groups = parameter_groups(nn::parameters_of(model), replica.optimizer);
  ReplicaBuffers buffers(replica, {.kernels = world.kernels,
                                   .group = group,
                                   .ledger = ledger,
                                   .stream = *stream,
                                   .shards = shards,
                                   .model = model,
                                   .slots = programs.slots});
  const WeightMatrices matrices = weight_matrices(nn::parameters_of(model), groups, layout);
  GatheredBuckets whole_buckets(matrices, group, shards, buffers.ddp);
  const auto optimizer =
      make_optimizer(groups.groups, replica.optimizer.ema, muon_parts(replica.optimizer, matrices, whole_buckets),
                     world.kernels, ledger.on(MemoryClass::optimizer), shards.elements());
  const auto buckets = ledger.hold(MemoryClass::optimizer, whole_buckets.bytes());
  plan_batches(spec, world, programs, group, ledger.on(MemoryClass::batches));
  const auto gathered =
      ledger.hold(MemoryClass::gradients, replica.devices > 1 ? DataParallel::gathered_bytes(layout) : 0);
  const auto step = ledger.hold(MemoryClass::step, TrainStep::memory_bytes(for_groups(replica.step, groups)));
  const auto statistics = ledger.hold(MemoryClass::step, programs.statistics);
  const auto averages = ledger.hold(MemoryClass::parameters, averaged_weight_bytes(replica, shards));
  MemoryTable table = ledger.peaks();
  for (const nn::ProgramMemory& program : {programs.training, programs.evaluation}) {
    table[MemoryClass::activations] += program.activations + program.activation_gradients;
    table[MemoryClass::workspace] += program.workspace;
  }
  return table;
}

MemoryTable plan_further_device(const MemoryPlanSpec& spec, const MemoryPlanWorld& world,
                                const ProgramMemories& programs) {
  const ReplicaSpec& replica = spec.replica;
  const nn::Model model = model_of(spec, world);
  const nn::ArenaLayout layout = replica_layout(replica, model, nn::parameters_of(model), spec.world_size);
  return DeviceReplica::planned_memory({.model = model,
                                        .layout = layout,
                                        .sample = world.train_set.shape(),
                                        .max_batch = replica.batch_of_device(),
                                        .dtype = replica.precision},
                                       programs.training);
}

}  // namespace gradring::train
