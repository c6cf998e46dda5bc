// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/trace_track.h"
#include "nn/backend/backend.h"
#include "nn/program/program.h"
#include "train/core/data_parallel/data_parallel.h"
#include "train/core/ddp/gathered_buckets.h"
#include "train/core/ddp/gathered_statistics.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/core/optim/optimizer.h"
#include "train/core/trainer/replica_buffers.h"
#include "train/core/trainer/train_step.h"
#include "train/core/trainer/training_state.h"
#include "train/records/metrics/memory_ledger.h"
#include "train/records/metrics/summary.h"

namespace gradring::train {

/// What a replica works with. All of it must outlive the replica.
struct ReplicaWorld {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  kernels::Shape sample;  ///< height, width, channels
  std::int64_t classes = 0;
  std::span<const FurtherDevice> others = {};  ///< ReplicaSpec::devices without the first
};

/// Wrappers with which a benchmark observes parts of a replica.
struct ReplicaDecorators {
  std::function<std::unique_ptr<kernels::Stream>(std::unique_ptr<kernels::Stream>)> stream;
  std::function<std::unique_ptr<Optimizer>(std::unique_ptr<Optimizer>)> optimizer;
};

/// Device memory of a replica, besides its program.
struct ReplicaBytes {
  WeightBytes weights;
  std::size_t gradients = 0;       ///< their sums over the ranks; not those of passes on the rank
  std::size_t gradient_slots = 0;  ///< that buckets share before they are summed
  std::size_t wire = 0;            ///< gradients in the type that travels
  std::size_t optimizer = 0;       ///< its state
};

/// Weights, with the memory that they own, if any.
struct WholeWeights {
  std::unique_ptr<BucketMemory> memory;
  nn::Weights view;
  std::optional<kernels::CountedBytes> counted;  ///< that memory, in the ledger
};

/// One rank's copy of a model with everything that trains it: weights, gradients, optimizer, program, the collectives
/// that keep it equal to the other ranks' copies, and the step that uses them. ZeRO shards state over the ranks; the
/// resulting bits are the same.
///
/// Threads   one.
class Replica {
 public:
  /// Initializes the weights, and copies rank 0's to all ranks. Collective.
  ///
  /// Errors    InvalidArgument, DeviceError, comm::CommError.
  Replica(const ReplicaSpec& spec, const ReplicaWorld& world, const ReplicaDecorators& decorators = {});
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const nn::Model& model() const { return model_; }
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  const ParameterGroups& groups() const { return groups_; }
  const nn::ArenaLayout& layout() const { return layout_; }
  /// All weights that layers read, with rank 0's buffers, valid for work on stream(). With ZeRO 3 a copy, owned by the
  /// result. Collective with ZeRO 3 or buffers.
  WholeWeights whole_weights();
  /// The same for the averaged weights (OptimizerSpec::ema), if there are any.
  std::optional<WholeWeights> averaged_weights();
  const nn::Program& program() const { return program_; }
  /// Whether a batch in f32 need not be rounded before (nn::Program::reads_f32).
  bool reads_f32() const { return !data_parallel_ && program_.reads_f32(); }
  /// For passes between steps.
  nn::Program& training_program() { return program_; }
  ModelBuffers& buffers() { return buffers_.of_model; }
  kernels::Stream& stream() { return *stream_; }
  /// What it allocated on the device, by class. Its trainer allocates through it, too.
  MemoryLedger& memory() { return memory_; }
  const MemoryLedger& memory() const { return memory_; }
  TrainStep& step() { return step_; }
  /// Peak allocation of the further devices of --data-parallel, by class.
  MemoryTable memory_of_others() const { return data_parallel_ ? data_parallel_->peak_memory() : MemoryTable(); }
  /// How long the last step waited for other ranks, or devices (DistributedDataParallel::exposed).
  std::chrono::duration<double> exposed_communication() const { return buffers_.ddp.exposed(); }

  /// Records steps on one track, and collectives of the group on the other. On a GPU the times would be those of
  /// enqueueing: there the tracks must not record, and may show ranges to a profiler.
  void trace(kernels::TraceTrack& compute, kernels::TraceTrack& communication) {
    step_.trace(compute);
    buffers_.ddp.trace(compute, communication);
    group_.trace(&communication);
  }

  /// Copies of the f32 master weights (nn::weights_arena), and of the sums of the last step, times its loss scale:
  /// layout().elements() floats. They block; collective with ZeRO.
  kernels::Buffer weights_on_host(Deadline deadline);
  /// SHA-256 of the master weights and the buffers: rank 0's, but this rank's own where batches are normalized together,
  /// since ranks then compute the same ones. Collective with ZeRO or buffers.
  Sha256 hash(Deadline deadline);
  kernels::Buffer gradients_on_host(Deadline deadline) { return transfer_.gather(buffers_.reducer->sums(), deadline); }
  /// The state after the last step; the tensors are on rank 0 only. Blocks; collective with ZeRO. All results of steps
  /// must have been taken.
  ReplicaState save(Deadline deadline);
  /// Draws the initial weights, but for those that rank 0 gives, by index and in PyTorch's order. Collective.
  void initialize_weights(std::uint64_t seed, const std::map<std::size_t, std::vector<float>>& given,
                          Deadline deadline);
  /// Loads rank 0's weights. Collective.
  ///
  /// Errors    CheckpointError with `from`, on rank 0, if they belong to another model.
  void load_weights(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from, Deadline deadline);
  /// Resumes from `state`, whose tensors count on rank 0 only; `step` counts on each rank. Collective.
  ///
  /// Errors    CheckpointError with `from`, on rank 0, if the tensors belong to another model or optimizer.
  void load(const ReplicaState& state, const std::filesystem::path& from, Deadline deadline);
  ReplicaBytes bytes() const;
  /// Of the rows that batch normalization gathers from all ranks.
  std::size_t statistics_bytes() const { return statistics_.bytes(); }

 private:
  std::unique_ptr<DataParallel> make_data_parallel(const ReplicaSpec& spec, const ReplicaWorld& world);
  WholeWeights with_buffers(WholeWeights weights);
  void enqueue_begin();
  kernels::Buffer host_weights();
  /// This rank's shards of an optimizer state.
  ShardPointers shards_of(const OptimizerState& state) const { return packed_shards(shards_, state.data); }
  std::vector<TensorRecord> records_of(std::span<const nn::Parameter> named, const nn::Arena& host) const;
  void copy_to_all(const kernels::Buffer& of_rank_0, Deadline deadline);

  kernels::Device& device_;
  comm::ProcessGroup& group_;
  MemoryLedger memory_;
  nn::Model model_;
  std::vector<nn::Parameter> parameters_;
  ParameterGroups groups_;
  nn::ArenaLayout layout_;
  Shards shards_;
  kernels::cast::Variant cast_;
  bool sync_batch_norm_;
  GatheredStatistics statistics_;
  nn::Program program_;
  std::unique_ptr<kernels::Stream> stream_;
  ReplicaBuffers buffers_;
  WeightMatrices matrices_;
  GatheredBuckets gathered_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<UpdateSlice> slices_;
  ShardTransfer transfer_;
  std::unique_ptr<DataParallel> data_parallel_;  // null on one device
  TrainStep step_;
};

/// Replicas differ. Exit code 163.
class ReplicaError : public Error, public ExitsWith<kReplicasDiffer> {
 public:
  using Error::Error;
};

/// Adds tensors in host memory to a hash: f32 little-endian, in state_dict order and PyTorch's layout.
void add_to_hash(Sha256Sum& sum, std::span<const nn::Parameter> tensors, const nn::Arena& values);

/// SHA-256 of all weights.
Sha256 hash_weights(std::span<const nn::Parameter> parameters, const nn::Arena& weights);

/// Checks that a hash is equal on all ranks. `what` names the content for the message.
///
/// Errors    ReplicaError with the ranks that differ from the majority; comm::CommError.
void check_replicas(comm::ProcessGroup& group, const Sha256& mine, const std::string& what);

}  // namespace gradring::train
