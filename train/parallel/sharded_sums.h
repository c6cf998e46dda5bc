// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "kernels/accumulate/accumulate.h"
#include "kernels/runtime/device.h"
#include "train/parallel/collected_sums.h"
#include "train/parallel/gradient_wire.h"

namespace gradring::train {

/// The sums of this rank's shards (ZeRO 2 and 3): what a pass has summed over the ranks is collected bucket by bucket, and then
/// the bucket's place is free for another.
///
/// Numerics  of several passes (--sync-every-pass) sums over the ranks first, then over the passes.
/// Threads   that of the trainer. What is given must outlive it.
class ShardedSums final : public CollectedSums {
 public:
  struct Parts {
    kernels::Device& device;
    const BucketMemory& gradients;
    const Shards& shards;
    GradientWire& wire;
    kernels::accumulate::Variant accumulate;
  };
  explicit ShardedSums(const Parts& parts);

  void begin(bool first_pass) override { first_pass_ = first_pass; }
  void enqueue_sum(int bucket, kernels::Stream& stream) override;
  const kernels::Event& collected(int bucket) const override { return *collected_[static_cast<std::size_t>(bucket)]; }

  ShardPointers pointers() const { return packed_shards(parts_.shards, memory_.as<float>()); }
  const float* riders() const { return riders_.as<float>(); }
  std::size_t bytes() const { return memory_.size(); }

 private:
  void enqueue_collect(const float* from, float* to, std::size_t elements, kernels::Stream& stream);

  Parts parts_;
  kernels::Buffer memory_;
  kernels::Buffer riders_;
  std::vector<std::unique_ptr<kernels::Event>> collected_;
  bool first_pass_ = true;
};

}  // namespace gradring::train
