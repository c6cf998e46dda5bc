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

/// Completes and checks a step's summed gradients: whether all are finite, which is the first non-finite one in the order
/// of backward, their squared norm, and how many are too small for f16. Each rank checks what it has: everything, or its
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
    kernels::PartialSums& partial_sums;  ///< of the gradients, that are still to be added up
  };
  /// Checks gradients whose shards are at `gradients`. Collective.
  ///
  /// Errors    InvalidArgument if a shard is not a multiple of a block.
  NonFiniteCheck(const Parts& parts, const ShardPointers& gradients);

  /// What it writes, in device memory.
  struct Results {
    kernels::step_state::StepState* found = nullptr;
    unsigned* arrivals = nullptr;                ///< of FinishArgs
    kernels::step_state::PrepareArgs prepare{};  ///< of *found, whose norm is checked; a null state: not done
  };
  /// Completes the gradients, writes the results to *found and sum_of_squares(), and prepares the state for the
  /// optimizer, on the compute stream: on a GPU by one launch, unless shards are exchanged.
  void enqueue(kernels::Stream& stream, const Results& results);
  /// The parameter that StepState::first_non_finite belongs to; -1 if all gradients are finite.
  int parameter_at(std::int64_t first_non_finite) const;
  /// StepState::tiny_gradients as a share of all gradients.
  double share_of(std::int64_t tiny_gradients) const;
  const float* sum_of_squares() const { return sum_.as<float>(); }
  /// What the transport allocated.
  std::size_t bytes() const { return blocks_->size(); }

 private:
  using Run = kernels::gradient_statistics::Run;
  void add(const Run& run);
  void enqueue_shards(kernels::Stream& stream);
  float* notes() const { return blocks_->as<float>() + notes_at_; }

  Parts parts_;
  std::vector<Run> runs_;
  std::vector<std::int64_t> first_of_bucket_;  // where each bucket begins, in elements as they are checked
  std::int64_t padding_ = 0;                   // checked zeros between tensors
  std::int64_t gradients_ = 0;
  std::size_t block_count_, notes_at_;
  std::unique_ptr<comm::Segment> blocks_;  // of the whole arena: sums, then notes
  kernels::Buffer sum_;
};

}  // namespace gradring::train
