// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "comm/process_group.h"
#include "kernels/kernel_set.h"
#include "nn/backend/backend.h"
#include "nn/parameter/parameter.h"
#include "nn/program/program.h"
#include "train/memory/memory_ledger.h"
#include "train/optim/optimizer.h"
#include "train/parallel/buckets.h"
#include "train/parallel/gradient_search.h"
#include "train/parallel/shard_transfer.h"
#include "train/parallel/shards.h"
#include "train/precision/compute_weights.h"
#include "train/precision/loss_scaling.h"
#include "train/trainer/replica_gradients.h"
#include "train/trainer/replica_state.h"
#include "train/trainer/train_step.h"

namespace gradring::train {

/// What a replica is made of; equal on all ranks but for the seed, of which rank 0's counts.
struct ReplicaSpec {
  std::string model = "convnet";
  std::int64_t batch_size = 64;  ///< at most, in one forward and backward pass
  kernels::DType precision = kernels::DType::f32;
  nn::Checkpointing checkpointing;
  LossScaling loss_scaling;
  OptimizerSpec optimizer;
  std::vector<float> learning_rates = {1e-3f};  ///< of applied steps; the last one goes on
  double clip_norm = 0;                         ///< of all gradients together; 0: they are not clipped
  bool searches_gradients = false;  ///< for what is not finite, even if neither scaling nor clipping needs that
  BucketLimits buckets;
  WireSpec wire;
  int zero = 0;                  ///< what ranks share out (ZeRO): 1 optimizer state, 2 gradients too, 3 weights too
  bool accumulates = false;      ///< a step may be made of several batches
  bool sync_every_pass = false;  ///< ranks sum the gradients of each of them (ZeRO 2 and 3)
  std::int64_t exact_terms =
      0;                   ///< sums have the same bits in any order of so many passes of all ranks; 0: they may differ
  bool overlap = true;     ///< gradients are summed while backward goes on
  bool recorded = false;   ///< steps are recorded and launched as one (TrainStep)
  std::uint64_t seed = 0;  ///< of the first weights
};

/// How the arenas of such a replica are laid out, on every rank.
nn::ArenaLayout replica_layout(const ReplicaSpec& spec, const nn::Model& model,
                               std::span<const nn::Parameter> parameters, int world_size);

/// Where it lives. All of it must outlive the replica.
struct ReplicaPlace {
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  nn::Backend& backend;
  comm::ProcessGroup& group;
  kernels::Shape sample;  ///< height, width, channels
  std::int64_t classes = 0;
};

/// Places for buckets that take turns: for those that a plan uses at once, and one that is on its way meanwhile.
int places_for(const nn::ArenaLayout& layout, const nn::Program& program);

/// Whether averaged weights are evaluated where they are; else they are gathered, in what layers read, into memory of their own.
bool averages_are_read_in_place(const Shards& shards, kernels::DType dtype);

/// Whether a rank sums the passes of a step by itself, in an arena of its own, before the ranks exchange gradients. Exact sums
/// need none: they may be added in any order.
bool sums_passes_first(const ReplicaSpec& spec);

/// What a bench puts around parts of a replica to look into it.
struct ReplicaDecorators {
  std::function<std::unique_ptr<kernels::Stream>(std::unique_ptr<kernels::Stream>)> stream;
  std::function<std::unique_ptr<Optimizer>(std::unique_ptr<Optimizer>)> optimizer;
};

/// What a replica takes of its device's memory, besides its program, by kind.
struct ReplicaBytes {
  WeightBytes weights;
  std::size_t gradients = 0;        ///< their sums over the ranks; a rank's own, of several passes, are beside it
  std::size_t gradient_places = 0;  ///< through which buckets go on their way to the sums
  std::size_t wire = 0;             ///< gradients as they travel in 16 bits
  std::size_t optimizer = 0;        ///< its state
};

/// Weights, and what memory they have of their own.
struct WholeWeights {
  std::unique_ptr<BucketMemory> memory;
  nn::Weights view;
  std::optional<kernels::CountedBytes> counted;  ///< that memory, where the ledger holds it
};

/// One rank's copy of a model with everything that trains it: weights, gradients, optimizer, program, the collectives that
/// keep it equal to the other ranks' copies, and the step that uses them. With ZeRO, ranks share out what each would else
/// keep whole; the bits that come out are the same.
///
/// Threads   one.
class Replica {
 public:
  /// Draws the weights and takes over rank 0's; blocks until all ranks have come.
  ///
  /// Errors    InvalidArgument, DeviceError, comm::CommError.
  Replica(const ReplicaSpec& spec, const ReplicaPlace& place, const ReplicaDecorators& decorators = {});
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  const nn::Model& model() const { return model_; }
  const std::vector<nn::Parameter>& parameters() const { return parameters_; }
  const nn::ArenaLayout& layout() const { return layout_; }
  /// The weights that layers read, all at once: a copy that goes with the result, where a rank does not keep them all; then it
  /// blocks until all ranks have come. They are there for work on stream().
  WholeWeights whole_weights();
  /// The same of the averaged weights (OptimizerSpec::ema), if there are any.
  std::optional<WholeWeights> averaged_weights();
  const nn::Program& program() const { return program_; }
  kernels::Stream& stream() { return *stream_; }
  /// What it has allocated on the device, by what it is for. Who trains it allocates from there, too.
  MemoryLedger& memory() { return memory_; }
  const MemoryLedger& memory() const { return memory_; }
  TrainStep& step() { return step_; }
  /// How long the last step waited for gradients of other ranks.
  std::chrono::duration<double> exposed_communication() const { return gradients_.ddp().exposed(); }

  /// Copies of the weights that are trained, in f32, and of the sums of the last step, times its loss scale. They hold
  /// layout().elements() floats. Block, with ZeRO until all ranks have come.
  kernels::Buffer weights_on_host(Deadline deadline);
  kernels::Buffer gradients_on_host(Deadline deadline) { return transfer_.gather(gradients_.sums(), deadline); }
  /// What it carries to the next step; the tensors are there on rank 0 alone. Blocks, with ZeRO until all ranks have come. All
  /// results of steps must have been taken.
  ReplicaState save(Deadline deadline);
  /// Takes over weights of rank 0's choice. Blocks until all ranks have come.
  ///
  /// Errors    CheckpointError with `from`, on rank 0, if they are another model's: which.
  void load_weights(std::span<const TensorRecord> of_rank_0, const std::filesystem::path& from, Deadline deadline);
  /// Goes on from `state`, whose tensors count on rank 0 alone; `step` counts on each. Blocks until all ranks have come.
  ///
  /// Errors    CheckpointError with `from`, on rank 0, if the tensors are those of another model or optimizer: which.
  void load(const ReplicaState& state, const std::filesystem::path& from, Deadline deadline);
  ReplicaBytes bytes() const;

 private:
  void hold_transport_memory(kernels::DType precision);
  void enqueue_begin();
  kernels::Buffer host_arena();
  void draw_weights(std::uint64_t seed, Deadline deadline);
  /// An optimizer state's shards of this rank.
  ShardPointers shards_of(const OptimizerState& state) const { return packed_shards(shards_, state.data); }
  std::vector<TensorRecord> records_of(const kernels::Buffer& host, std::string_view prefix) const;
  void load_shards(const ShardPointers& to, std::span<const TensorRecord> tensors, const std::filesystem::path& from,
                   std::string_view prefix, Deadline deadline);

  kernels::Device& device_;
  comm::ProcessGroup& group_;
  MemoryLedger memory_;
  nn::Model model_;
  std::vector<nn::Parameter> parameters_;
  nn::ArenaLayout layout_;
  Shards shards_;
  kernels::cast::Variant cast_;
  std::vector<kernels::CountedBytes> held_;
  nn::Program program_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<kernels::Stream> stream_;
  ReplicaGradients gradients_;
  std::unique_ptr<ComputeWeights> weights_;
  std::vector<UpdateSlice> slices_;
  ShardTransfer transfer_;
  GradientSearch search_;
  TrainStep step_;
};

}  // namespace gradring::train
