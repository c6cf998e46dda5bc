// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/ops/elementwise/elementwise.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/core/ddp/buckets.h"
#include "train/core/ddp/distributed_data_parallel.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// Device memory of weights.
struct WeightBytes {
  std::size_t whole = 0;   ///< that layers read
  std::size_t master = 0;  ///< f32 weights besides those
  std::size_t slots = 0;   ///< for gathered buckets, while layers read them
};

/// The weights that layers read, and the f32 master weights that are trained, of which each rank has its shards.
///
/// Threads   the trainer's.
class ComputeWeights {
 public:
  virtual ~ComputeWeights() = default;

  /// What a training program reads, with observer() as its observer.
  virtual const nn::Weights& view() const = 0;
  virtual nn::StepObserver& observer() = 0;
  /// A copy of all weights, for use without the observer; null where view() has all. Collective; enqueued on `stream`.
  virtual std::unique_ptr<BucketMemory> gather_whole(kernels::Stream& stream) = 0;

  /// This rank's shards, in f32.
  virtual const ShardPointers& master() const = 0;
  /// The master weights as an arena, where this rank has all of them; else null.
  virtual const float* whole_master() const = 0;
  /// Where the optimizer writes a rounded copy of this rank's shard of a bucket, if anywhere.
  virtual RoundedCopy copy(int bucket) const = 0;

  /// Updates what layers read, after master weights were initialized or loaded.
  virtual void enqueue_refresh(kernels::Stream& stream) = 0;
  /// The same after an optimizer step, which has written the copies of this rank's shards.
  virtual void enqueue_gather(kernels::Stream& stream) = 0;

  virtual WeightBytes bytes() const = 0;
};

struct WeightParts {
  kernels::Device& device;
  comm::ProcessGroup& group;
  const Shards& shards;
  kernels::cast::Variant cast;
  const std::byte* frozen = nullptr;  ///< nn::Weights::frozen
  float* buffers = nullptr;           ///< of the model: nn::Weights::buffers
};

/// Every rank keeps all weights that layers read. In f32 they are the master weights. In f16 and bf16 they are a
/// rounded copy, which the optimizer updates together with this rank's shards of the master weights. Other ranks'
/// shards are gathered.
class GatheredWeights final : public ComputeWeights {
 public:
  /// Collective. Layers read `dtype`.
  GatheredWeights(const WeightParts& parts, kernels::DType dtype);

  const nn::Weights& view() const override { return view_; }
  nn::StepObserver& observer() override { return no_observer_; }
  std::unique_ptr<BucketMemory> gather_whole(kernels::Stream&) override { return nullptr; }
  const ShardPointers& master() const override { return master_; }
  const float* whole_master() const override;
  RoundedCopy copy(int bucket) const override;
  void enqueue_refresh(kernels::Stream& stream) override;
  void enqueue_gather(kernels::Stream& stream) override;
  WeightBytes bytes() const override { return {.whole = memory_.bytes(), .master = packed_.size()}; }

 private:
  bool rounded() const { return memory_.dtype() != kernels::DType::f32; }

  WeightParts parts_;
  BucketMemory memory_;     // what layers read
  kernels::Buffer packed_;  // master weights; empty in f32
  nn::Weights view_;
  ShardPointers master_;
  nn::NoObserver no_observer_;
};

/// No rank keeps whole weights (ZeRO 3). Before a plan reads a bucket, its shards are gathered from all ranks into one
/// of a few slots. While the plan runs, the next bucket is prefetched: passes are alike, so the last pass tells which
/// that is.
///
/// Memory    slots for one bucket more than a plan reads at once.
class PrefetchedWeights final : public ComputeWeights, private nn::StepObserver {
 public:
  /// Collective. Layers read `dtype`.
  PrefetchedWeights(const WeightParts& parts, DistributedDataParallel& ddp, kernels::DType dtype, int slots);

  const nn::Weights& view() const override { return view_; }
  nn::StepObserver& observer() override { return *this; }
  std::unique_ptr<BucketMemory> gather_whole(kernels::Stream& stream) override;
  const ShardPointers& master() const override { return master_; }
  const float* whole_master() const override { return parts_.shards.whole() ? packed_.as<float>() : nullptr; }
  RoundedCopy copy(int) const override { return {}; }
  void enqueue_refresh(kernels::Stream&) override {}
  void enqueue_gather(kernels::Stream&) override {}
  WeightBytes bytes() const override { return {.master = packed_.size(), .slots = memory_.bytes()}; }

 private:
  struct Slot {
    int bucket = -1;  // in this pass
    bool awaited = false;
    std::unique_ptr<kernels::Event> free;     // on the compute stream: the bucket before is no longer read
    std::unique_ptr<kernels::Event> arrived;  // on the communication stream
  };
  /// Buckets that are read at once.
  struct Need {
    int first = 0;
    int last = -1;
  };

  void before_forward() override;
  void weights_needed(std::span<const int> parameters) override;

  Slot& slot_of(int bucket) { return slots_[static_cast<std::size_t>(memory_.slot_of(bucket))]; }
  void fetch(int bucket);
  void await(int bucket);
  void fetch_next(const Need& now);

  WeightParts parts_;
  DistributedDataParallel& ddp_;
  kernels::Buffer packed_;  // this rank's shards
  ShardPointers master_;
  BucketMemory memory_;
  nn::Weights view_;
  std::vector<Slot> slots_;
  std::vector<Need> needs_;       // of this pass so far
  std::vector<Need> last_needs_;  // of the whole last pass
};

/// Gathers f32 shards of weights from all ranks into new memory of type `dtype`. Collective.
std::unique_ptr<BucketMemory> gather_whole(const WeightParts& parts, const ShardPointers& shards, kernels::DType dtype,
                                           kernels::Stream& stream);

/// The parameter group of each parameter, and the matrix, if it is one (WeightMatrices).
struct ParameterRoles {
  std::span<const int> group;
  std::span<const int> matrix = {};  ///< empty: there are no matrices
};

/// What this rank's optimizer updates: its shards, split where parameters of another group begin; neighbours are merged.
/// A part of a matrix is a slice of its own. Optimizer state is packed.
std::vector<UpdateSlice> update_slices(const Shards& shards, const ComputeWeights& weights,
                                       const ShardPointers& gradients, const ParameterRoles& roles);

}  // namespace gradring::train
