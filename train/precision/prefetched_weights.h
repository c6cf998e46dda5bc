// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "train/parallel/distributed_data_parallel.h"
#include "train/precision/compute_weights.h"
#include "train/precision/gather_bucket.h"

namespace gradring::train {

/// No rank keeps whole weights (ZeRO 3): of each bucket it trains its shard, in f32, and before a plan reads a bucket, the
/// shards of all ranks come together in one of a few places, in the type that layers read. While a plan runs, the bucket that
/// is read next is fetched: what comes next is known from the pass before, for all passes are alike.
///
/// Memory    places for one bucket more than a plan reads at once.
/// Threads   that of the trainer. What is given must outlive it.
class PrefetchedWeights final : public ComputeWeights, private nn::StepObserver {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    DistributedDataParallel& ddp;
    const Shards& shards;
    kernels::cast::Variant cast;
  };
  /// Blocks until all ranks have come.
  PrefetchedWeights(const Parts& parts, kernels::DType dtype, int places);

  const nn::Weights& view() const override { return view_; }
  nn::StepObserver& observer() override { return *this; }
  std::unique_ptr<BucketMemory> gather_whole(kernels::Stream& stream) override;
  const ShardPointers& master() const override { return master_; }
  const float* whole_master() const override { return parts_.shards.whole() ? packed_.as<float>() : nullptr; }
  RoundedCopy copy(int) const override { return {}; }
  void enqueue_refresh(kernels::Stream&) override {}
  void enqueue_gather(kernels::Stream&) override {}
  WeightBytes bytes() const override { return {.master = packed_.size(), .places = places_.bytes()}; }

 private:
  /// What is where in this pass.
  struct Place {
    int bucket = -1;
    bool awaited = false;
    std::unique_ptr<kernels::Event> free;     // on the compute stream: nobody reads what was there before
    std::unique_ptr<kernels::Event> arrived;  // on the communication stream
  };
  /// Buckets that are read at once.
  struct Need {
    int first = 0;
    int last = -1;
  };

  void before_forward() override;
  void before_backward() override {}
  void weights_needed(std::span<const int> parameters) override;
  void gradients_begin(std::span<const int>) override {}
  void gradient_ready(int) override {}

  Place& place_of(int bucket) { return at_[static_cast<std::size_t>(places_.place_of(bucket))]; }
  void fetch(int bucket);
  void await(int bucket);
  void fetch_next(const Need& now);
  GatherParts gather() const { return {.group = parts_.group, .shards = parts_.shards, .cast = parts_.cast}; }

  Parts parts_;
  kernels::Buffer packed_;  // this rank's shards
  ShardPointers master_;
  BucketMemory places_;
  nn::Weights view_;
  std::vector<Place> at_;
  std::vector<Need> needs_;   // of this pass so far
  std::vector<Need> before_;  // of the whole pass before
};

}  // namespace gradring::train
