// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "nn/backend/replica_statistics.h"
#include "train/core/ddp/distributed_data_parallel.h"

namespace gradring::train {

/// Statistics of all ranks, gathered on the communication stream among the sums of buckets: in the same order on every
/// rank, because plans and buckets are. The compute stream waits for each.
class GatheredStatistics final : public nn::ReplicaStatistics {
 public:
  /// `shards`: that every rank cuts its batches into.
  explicit GatheredStatistics(comm::ProcessGroup& group, int shards = 1) : group_(group), shards_(shards) {}
  GatheredStatistics(const GatheredStatistics&) = delete;
  GatheredStatistics& operator=(const GatheredStatistics&) = delete;

  /// Allocates what was reserved. Collective if that is anything. `ddp` must outlive it.
  void connect(kernels::Device& device, DistributedDataParallel& ddp);
  /// Of what is reserved.
  std::size_t bytes() const { return elements_ * sizeof(float); }

  int replicas() const override { return group_.world_size(); }
  int own() const override { return group_.rank(); }
  int shards() const override { return shards_; }
  int reserve(std::size_t floats) override;
  float* rows(int number) const override;
  void enqueue_gather(int number) override;

 private:
  struct Rows {
    comm::Slice slice;  // of all ranks
    std::unique_ptr<kernels::Event> written;
    std::unique_ptr<kernels::Event> gathered;
  };

  comm::ProcessGroup& group_;
  int shards_;
  DistributedDataParallel* ddp_ = nullptr;
  std::vector<Rows> reserved_;
  std::size_t elements_ = 0;
  std::unique_ptr<comm::Segment> segment_;
};

}  // namespace gradring::train
