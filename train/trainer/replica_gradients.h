// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "kernels/kernel_set.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/exact_rounding.h"
#include "train/parallel/exact_units.h"
#include "train/parallel/gradient_path.h"
#include "train/parallel/gradient_wire.h"
#include "train/parallel/sharded_sums.h"
#include "train/parallel/shards.h"

namespace gradring::train {

struct ReplicaGradientsSpec {
  bool sharded = false;  ///< a rank keeps the sums of its own shards alone
  int places = 0;        ///< of buckets that are written at once, if sharded
  WireSpec wire;
  bool sums_passes_first = false;  ///< on the rank, before the ranks exchange gradients; not with exact_terms
  std::int64_t exact_terms = 0;    ///< sums do not depend on the order of so many passes of all ranks; 0: they may
  bool overlap = true;             ///< gradients are summed while backward goes on
};

/// All that becomes of a replica's gradients, put together: where backward leaves them, how they are summed over the ranks and
/// the passes of a step, and where the sums are.
///
/// Threads   that of the trainer. What is given must outlive it.
class ReplicaGradients {
 public:
  struct Parts {
    kernels::Device& device;
    const kernels::KernelSet& kernels;
    comm::ProcessGroup& group;
    kernels::Stream& stream;
    const Shards& shards;
  };
  /// Blocks until all ranks have come.
  ReplicaGradients(const ReplicaGradientsSpec& spec, const Parts& parts);

  GradientPath& path() { return *path_; }
  DistributedDataParallel& ddp() { return *ddp_; }
  const DistributedDataParallel& ddp() const { return *ddp_; }
  /// The sums of this rank's shards, once a step was joined.
  const ShardPointers& sums() const { return sums_; }
  const float* riders() const { return riders_; }
  /// Where backward writes.
  const BucketMemory& memory() const { return memory_; }

  /// Of the sums over the ranks; of places that buckets go through; of what travels in 16 bits.
  std::size_t sum_bytes() const;
  std::size_t place_bytes() const { return sharded_ ? memory_.bytes() : 0; }
  std::size_t wire_bytes() const;

 private:
  void keep_all(const ReplicaGradientsSpec& spec, const Parts& parts);
  /// Puts what rounds gradients to whole numbers before `path_`.
  void keep_exact(const ReplicaGradientsSpec& spec, const Parts& parts);
  void keep_shards(const ReplicaGradientsSpec& spec, const Parts& parts);
  std::unique_ptr<GradientPath> make_replicated();
  std::unique_ptr<GradientPath> make_rotation(const Parts& parts, CollectedSums& sums);
  /// Puts what sums the passes of a step before `path_`.
  void accumulate_before(const Parts& parts);

  bool sharded_;
  BucketMemory memory_;
  GradientWire wire_;
  std::optional<ShardedSums> collected_;
  std::optional<ExactRounding> rounding_;
  std::optional<ExactUnits> units_;
  kernels::Buffer exact_sums_;  // of shards that were collected as units
  std::unique_ptr<DistributedDataParallel> ddp_;
  std::unique_ptr<GradientPath> inner_;  // of path_, where gradients are rounded to units first
  std::unique_ptr<GradientPath> path_;
  ShardPointers sums_;
  const float* riders_ = nullptr;
};

}  // namespace gradring::train
