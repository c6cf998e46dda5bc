// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "kernels/step_state/step_state.h"
#include "kernels/sum_of_squares/sum_of_squares.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// Whether all gradients of a step are finite, which is the first that is not as backward goes, their squared length, and how
/// many are too small for f16. Each rank looks at what it has: all, or its shards, of which the partial results then go to
/// all. Riders are not looked at: the loss may be infinite where no gradient is.
///
/// A gradient counts as too small that is below the least number that f16 holds, as it is summed, times the loss scale: such
/// ones were lost on the way, or would be. Zeros are among them, and nobody can tell those that were lost from those of units
/// that gave nothing: the share is an upper bound.
///
/// Numerics  the same bits on every rank, however many ranks and shards there are: partial sums of fixed blocks of each bucket,
///           added up in the order of the buckets.
/// Threads   that of the trainer. What is given must outlive it.
class GradientSearch {
 public:
  struct Parts {
    kernels::Device& device;
    comm::ProcessGroup& group;
    DistributedDataParallel& ddp;
    const Shards& shards;
    kernels::sum_of_squares::Variant kernel;
  };
  /// Of gradients whose shards lie at `gradients`. Blocks until all ranks have come.
  ///
  /// Errors    InvalidArgument if shards are no multiples of a block.
  GradientSearch(const Parts& parts, const ShardPointers& gradients);

  /// On the stream that ddp computes on: sets in *found what is said of the gradients, and what sum_of_squares() points to.
  void enqueue(kernels::Stream& stream, kernels::step_state::StepState* found);
  /// The parameter of which StepState::first_non_finite is a gradient; -1 if it is none.
  int parameter_at(std::int64_t first_non_finite) const;
  /// StepState::tiny_gradients of all gradients.
  double share_of(std::int64_t tiny_gradients) const;
  /// What the transport allocated for it.
  std::size_t bytes() const { return blocks_->size(); }
  static std::size_t bytes_of(const nn::ArenaLayout& layout);
  const float* sum_of_squares() const { return sum_.as<float>(); }

 private:
  /// Neighbours in memory, whose blocks are neighbours too.
  struct Run {
    const float* data = nullptr;
    std::size_t block = 0;  // its first, among those of all buckets
    std::size_t elements = 0;
  };
  void add(const Run& run);
  void enqueue_exchange();
  float* notes() const { return blocks_->as<float>() + block_count_; }

  Parts parts_;
  std::vector<Run> runs_;
  std::vector<std::int64_t> first_of_bucket_;  // where each bucket begins, as the elements are searched
  std::int64_t between_ = 0;                   // searched zeros that are no gradients: what lies between tensors
  std::int64_t gradients_ = 0;
  std::size_t block_count_;
  std::unique_ptr<comm::Segment> blocks_;  // of the whole arena: sums, then notes
  kernels::Buffer sum_;
};

}  // namespace gradring::train
