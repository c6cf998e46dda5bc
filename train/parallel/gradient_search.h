// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "kernels/sum_of_squares/sum_of_squares.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/shards.h"

namespace gradring::train {

/// Whether all gradients of a step are finite, and their squared length. Each rank looks at what it has: all, or its shards,
/// whose partial sums then go to all. Riders are not looked at: the loss may be infinite where no gradient is.
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

  /// On the stream that ddp computes on: sets *non_finite, and what sum_of_squares() points to.
  void enqueue(kernels::Stream& stream, std::int32_t* non_finite);
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

  Parts parts_;
  std::vector<Run> runs_;
  std::size_t block_count_;
  std::unique_ptr<comm::Segment> blocks_;  // of the whole arena
  kernels::Buffer sum_;
};

}  // namespace gradring::train
