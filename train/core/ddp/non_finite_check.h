// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/ops/gradient_statistics/gradient_statistics.h"
#include "kernels/ops/step_state/step_state.h"
#include "kernels/runtime/device.h"
#include "train/core/ddp/distributed_data_parallel.h"

namespace gradring::train {

/// Checks a step's summed gradients: whether all are finite, which is the first non-finite one in the order of
/// backward, their squared norm, and how many are too small for f16. Each rank checks what it has: everything, or its
/// shards, whose partial results are then all-reduced. The loss is not checked: it may be infinite where no gradient
/// is.
///
/// A gradient is too small if its sum, times the loss scale, is below f16's least number: such values were lost in f16,
/// or would be. Zeros count, and real zeros cannot be told from lost values, so the share is an upper bound.
///
/// Numerics  the same bits on every rank and for any number of ranks and shards: partial sums of fixed blocks of each
///           bucket, added in the order of the buckets.
/// Threads   the trainer's.
class NonFiniteCheck {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    DistributedDataParallel& ddp;
    const Shards& shards;
    kernels::gradient_statistics::Variant kernel;
  };
  /// Checks gradients whose shards are at `gradients`. Collective.
  ///
  /// Errors    InvalidArgument if a shard is not a multiple of a block.
  NonFiniteCheck(const Parts& parts, const ShardPointers& gradients);

  /// Writes the results to *found and sum_of_squares(), on the compute stream.
  void enqueue(kernels::Stream& stream, kernels::step_state::StepState* found);
  /// The parameter that StepState::first_non_finite belongs to; -1 if all gradients are finite.
  int parameter_at(std::int64_t first_non_finite) const;
  /// StepState::tiny_gradients as a share of all gradients.
  double share_of(std::int64_t tiny_gradients) const;
  const float* sum_of_squares() const { return sum_.as<float>(); }
  /// What the transport allocated.
  std::size_t bytes() const { return blocks_->size(); }

 private:
  /// Contiguous gradients with contiguous blocks.
  struct Run {
    const float* data = nullptr;
    std::size_t block = 0;  // the first, counted over all buckets
    std::size_t elements = 0;
  };
  void add(const Run& run);
  void enqueue_exchange();
  float* notes() const { return blocks_->as<float>() + block_count_; }

  Parts parts_;
  std::vector<Run> runs_;
  std::vector<std::int64_t> first_of_bucket_;  // where each bucket begins, in elements as they are checked
  std::int64_t padding_ = 0;                   // checked zeros between tensors
  std::int64_t gradients_ = 0;
  std::size_t block_count_;
  std::unique_ptr<comm::Segment> blocks_;  // of the whole arena: sums, then notes
  kernels::Buffer sum_;
};

}  // namespace gradring::train
