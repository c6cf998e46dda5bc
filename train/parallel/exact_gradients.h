// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "comm/process_group.h"
#include "kernels/exact_sum/exact_sum.h"
#include "train/parallel/bucket_memory.h"
#include "train/parallel/bucket_sum.h"
#include "train/parallel/distributed_data_parallel.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Gradients as whole multiples of a unit, and their sums over the ranks: 64-bit integers, whose sums have the same bits in any
/// order (kernels/exact_sum). What is no such multiple, because it is too large or no number, is counted; if anybody counted
/// one, all sums are NaN.
///
/// Memory    8 bytes an element of the arena, which the transport allocated.
/// Threads   that of the trainer. What is given must outlive it.
class ExactUnits final : public BucketSum {
 public:
  /// Blocks until all ranks have come.
  ExactUnits(comm::ProcessGroup& group, const nn::ArenaLayout& layout, comm::AllReduceAlgorithm algorithm);

  void enqueue_clear(kernels::Stream& stream);
  void enqueue_sum(int bucket, kernels::Stream& stream) override;

  std::int64_t* bucket(int index) const { return reinterpret_cast<std::int64_t*>(buckets_.data(index)); }
  std::int64_t* refused() const { return totals_->as<std::int64_t>(); }
  std::int64_t* loss() const { return refused() + 1; }
  std::int64_t* refused_losses() const { return refused() + 2; }
  std::size_t bytes() const { return buckets_.bytes() + totals_->size(); }
  static std::size_t bytes_of(const nn::ArenaLayout& layout);

 private:
  static constexpr std::size_t kTotals = 3;

  comm::ProcessGroup& group_;
  comm::AllReduceAlgorithm algorithm_;
  BucketMemory buckets_;
  std::unique_ptr<comm::Segment> totals_;
};

/// Sums that depend neither on the number of ranks nor on how a step's samples are cut into passes, as long as the passes
/// themselves are the same: each pass's gradients are rounded to units and added up.
///
/// Numerics  a gradient below 2^-45 becomes 0; the sum is exact from there on, and rounded once.
/// Threads   that of the trainer. What is given must outlive it.
class ExactGradients final : public GradientPath {
 public:
  struct Parts {
    kernels::Stream& stream;
    nn::Gradients sums;  ///< where passes write, and the sums come
    ExactUnits& units;
    DistributedDataParallel& next;
    kernels::exact_sum::Variant kernel;
    std::int64_t terms = 1;  ///< passes of all ranks in a step, at most
  };
  explicit ExactGradients(const Parts& parts);

  const nn::Gradients& begin(Pass pass) override;
  void enqueue_end() override;
  void scaled_by(const float* loss_scale) override { loss_scale_ = loss_scale; }

  void before_forward() override {}
  void before_backward() override;
  void weights_needed(std::span<const int>) override {}
  void gradients_begin(std::span<const int>) override {}
  void gradient_ready(int parameter) override;

 private:
  void enqueue_loss();
  std::int64_t* units_of(int parameter) const;

  Parts parts_;
  std::int64_t most_;
  const float* loss_scale_ = nullptr;
  Pass pass_;
  bool loss_added_ = false;  // in this pass
};

}  // namespace gradring::train
