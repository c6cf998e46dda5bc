// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "comm/process_group.h"
#include "kernels/exact_sum/exact_sum.h"

namespace gradring::train {

/// Gradients and losses as whole multiples of a unit, and back (kernels/exact_sum). What is no such multiple, because it is
/// too large or no number, is counted, parameter by parameter; once the counts of all ranks were summed, the gradients of a
/// parameter of which anybody refused one are NaN, all of them, and so is a loss.
///
/// Numerics  a gradient below 2^-45 becomes 0; sums are exact from there on, and rounded once.
/// Threads   that of the trainer. What is given must outlive it.
class ExactRounding {
 public:
  struct Parts {
    comm::ProcessGroup& group;
    kernels::Stream& stream;
    kernels::exact_sum::Variant kernel;
    int parameters = 0;
    std::int64_t terms = 1;  ///< numbers that one sum is made of, at most
  };
  /// Blocks until all ranks have come.
  explicit ExactRounding(const Parts& parts);

  /// What gradients are multiplied by, in device memory.
  void scaled_by(const float* loss_scale) { loss_scale_ = loss_scale; }

  /// A new sum begins.
  void enqueue_clear();
  void enqueue_add(int parameter, std::size_t elements, const float* gradients, std::int64_t* units);
  void enqueue_add_loss(const float* loss);
  /// Sums what was counted, and the loss, over the ranks; before anything is read.
  void enqueue_sum(kernels::Stream& stream, comm::AllReduceAlgorithm algorithm);
  void enqueue_read(int parameter, std::size_t elements, const std::int64_t* units, float* gradients);
  void enqueue_read_loss(float* loss);

  std::size_t bytes() const { return totals_->size(); }
  static std::size_t bytes_needed(int parameters);

 private:
  std::int64_t* loss() const { return totals_->as<std::int64_t>(); }
  std::int64_t* refused_losses() const { return loss() + 1; }
  std::int64_t* refused(int parameter) const { return loss() + 2 + parameter; }

  Parts parts_;
  std::int64_t most_;
  std::unique_ptr<comm::Segment> totals_;
  const float* loss_scale_ = nullptr;
};

}  // namespace gradring::train
