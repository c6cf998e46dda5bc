// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/parallel/exact_rounding.h"
#include "train/parallel/exact_units.h"
#include "train/parallel/gradient_path.h"

namespace gradring::train {

/// Sums that depend neither on the number of ranks, nor on how a step's samples are cut into passes or gradients into buckets
/// and shards, as long as the passes themselves are the same: each pass's gradients are rounded to units, and those are what
/// is added up.
///
/// Threads   that of the trainer. What is given must outlive it.
class ExactGradients final : public GradientPath {
 public:
  struct Parts {
    nn::Gradients places;  ///< where passes write
    ShardPointers sums;    ///< where this rank's shards of the sums come
    ExactRounding& rounding;
    ExactUnits& units;
    GradientPath& inner;  ///< sends a pass's buckets of units off
  };
  explicit ExactGradients(const Parts& parts) : parts_(parts) {}

  const nn::Gradients& begin(Pass pass) override;
  void enqueue_end() override;
  void scaled_by(const float* loss_scale) override { parts_.rounding.scaled_by(loss_scale); }

  void before_forward() override { parts_.inner.before_forward(); }
  void before_backward() override { parts_.inner.before_backward(); }
  void weights_needed(std::span<const int> parameters) override { parts_.inner.weights_needed(parameters); }
  void gradients_begin(std::span<const int> parameters) override { parts_.inner.gradients_begin(parameters); }
  void gradient_ready(int parameter) override;

 private:
  Parts parts_;
  Pass pass_;
  bool loss_added_ = false;  // in this pass
};

}  // namespace gradring::train
