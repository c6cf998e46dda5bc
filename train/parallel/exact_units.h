// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/collected_sums.h"
#include "train/parallel/exact_rounding.h"
#include "train/parallel/gradient_path.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// A window's gradients as 64-bit whole numbers, and their sums over the ranks, whose bits do not depend on any order. Either
/// every bucket has a place of its own, in which the passes add up, and is summed after the last one; or buckets take turns in
/// a few places, every pass is summed at once, and each rank collects the units of its shards.
///
/// Memory    8 bytes an element of the places, which the transport allocated, and of the shards that are collected.
/// Threads   that of the trainer. What is given must outlive it.
class ExactUnits final : public CollectedSums {
 public:
  struct Spec {
    int places = 0;  ///< that buckets take turns in; 0: each has its own
    comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::automatic;
  };
  struct Parts {
    comm::ProcessGroup& group;
    kernels::Device& device;
    kernels::Stream& stream;  ///< of backward
    const Shards& shards;
    ExactRounding& rounding;
    kernels::accumulate::Variant accumulate;
  };
  /// Blocks until all ranks have come.
  ExactUnits(const Spec& spec, const Parts& parts);

  void begin_pass(GradientPath::Pass pass);
  void begin(bool /*first_pass*/) override {}  // it was told more
  void enqueue_sum(int bucket, kernels::Stream& stream) override;
  const kernels::Event& collected(int bucket) const override { return *collected_[static_cast<std::size_t>(bucket)]; }

  /// Where a pass adds the units of a parameter's gradient.
  std::int64_t* parameter(int index) const;
  /// The sums of this rank's shard of a bucket, after the last pass.
  const std::int64_t* sums(int bucket) const;
  const Shards& shards() const { return parts_.shards; }

  std::size_t place_bytes() const { return places_.bytes(); }
  std::size_t collected_bytes() const { return memory_.size(); }

 private:
  bool collects() const { return !collected_.empty(); }
  std::int64_t* place(int bucket) const { return reinterpret_cast<std::int64_t*>(places_.data(bucket)); }
  void enqueue_collect(int bucket, kernels::Stream& stream);

  Spec spec_;
  Parts parts_;
  BucketMemory places_;
  kernels::Buffer memory_;  // collected units of this rank's shards, packed
  std::vector<std::unique_ptr<kernels::Event>> collected_;
  GradientPath::Pass pass_;
};

}  // namespace gradring::train
