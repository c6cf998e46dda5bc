// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/process_group.h"
#include "kernels/cast/cast.h"
#include "kernels/runtime/device.h"
#include "train/precision/compute_weights.h"

namespace gradring::train {

/// Every rank keeps all weights as the layers read them. In f32 they are the master weights; in f16 and bf16 a rounded copy,
/// which the optimizer renews as it updates the master weights, and of the master weights a rank keeps no more than its
/// shards. What other ranks have updated is gathered from them.
///
/// Threads   that of the trainer. What is given must outlive it.
class GatheredWeights final : public ComputeWeights {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    const Shards& shards;
    kernels::cast::Variant cast;
  };
  /// Weights that layers read as `dtype`. Blocks until all ranks have come.
  GatheredWeights(const Parts& parts, kernels::DType dtype);

  const nn::Weights& view() const override { return view_; }
  nn::StepObserver& observer() override { return nobody_; }
  std::unique_ptr<BucketMemory> gather_whole(kernels::Stream&) override { return nullptr; }
  const ShardPointers& master() const override { return master_; }
  const float* whole_master() const override;
  RoundedCopy copy(int bucket) const override;
  void enqueue_refresh(kernels::Stream& stream) override;
  void enqueue_gather(kernels::Stream& stream) override;
  WeightBytes bytes() const override { return {.whole = memory_.bytes(), .master = packed_.size()}; }

 private:
  bool copied() const { return memory_.dtype() != kernels::DType::f32; }

  Parts parts_;
  BucketMemory memory_;     // what layers read
  kernels::Buffer packed_;  // master weights; empty in f32
  nn::Weights view_;
  ShardPointers master_;
  nn::NoObserver nobody_;
};

}  // namespace gradring::train
