// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "train/core/ddp/buckets.h"
#include "train/core/ddp/distributed_data_parallel.h"
#include "train/core/ddp/parameter_groups.h"
#include "train/core/optim/optimizer.h"

namespace gradring::train {

/// The matrices that Muon updates.
struct WeightMatrices {
  std::vector<WeightMatrix> matrices;
  std::vector<int> of_parameter;  ///< the index of each parameter's matrix; -1: Muon does not update it
};

/// Those of a model: the weights of groups whose optimizer is Muon, but for frozen ones.
WeightMatrices weight_matrices(std::span<const nn::Parameter> parameters, const ParameterGroups& groups,
                               const nn::ArenaLayout& layout);

/// What a run's optimizer gets of them. The buckets must outlive it.
MuonParts muon_parts(const OptimizerSpec& spec, const WeightMatrices& matrices, WholeBuckets& buckets);

/// Memory of the largest bucket, in which shards of all ranks are gathered; nothing without matrices.
class GatheredBuckets final : public WholeBuckets {
 public:
  /// Collective. What it refers to must outlive it.
  GatheredBuckets(const WeightMatrices& matrices, comm::ProcessGroup& group, const Shards& shards,
                  DistributedDataParallel& ddp);

  float* data(int bucket) const override { return reinterpret_cast<float*>(memory_->data(bucket)); }
  void enqueue_gather(int bucket) override;
  std::size_t bytes() const { return memory_ ? memory_->bytes() : 0; }

 private:
  comm::ProcessGroup& group_;
  const Shards& shards_;
  DistributedDataParallel& ddp_;
  std::optional<BucketMemory> memory_;  // one slot
};

}  // namespace gradring::train
