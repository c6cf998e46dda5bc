// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/core/config/train_config.h"
#include "train/core/trainer/trainer_world.h"
#include "train/records/metrics/metrics.h"

namespace gradring::train {

/// A learning-rate range test: a short training in which the learning rate grows exponentially.
struct RangeTestSpec {
  double least = 1e-7;
  double most = 10;
  std::int64_t steps = 100;
};

/// The options of a training that makes the test: the schedule and the number of steps are the test's; no checkpoint is
/// resumed from, and non-finite gradients do not end it. Rates of parameter groups keep their ratio to the run's, and
/// their `epochs` have no effect.
///
/// Errors    UsageError if a group has a rate and the run has none.
TrainConfig range_test_config(TrainConfig config, const RangeTestSpec& spec);

/// A step of the test.
struct RangePoint {
  std::int64_t step = 0;
  double learning_rate = 0;
  double loss = 0;
  double smoothed = 0;  ///< exponential average of the losses so far, without the bias of its start
};

/// The losses of a range test; ends the training when the loss has diverged, or all steps were made.
///
/// It is what the trainer reports to, and what it asks between steps: all ranks see the same losses, so they stop
/// together.
///
/// Source    Smith: "Cyclical learning rates for training neural networks", 2017; smoothing (0.98), divergence (4 times
///           the least smoothed loss) and suggestion as in fastai 2.7, Learner.lr_find(suggest_funcs=steep).
/// Example   tests/train/core/trainer/range_test_test.cpp
class RangeTest final : public MetricsSink, public RunRequests {
 public:
  explicit RangeTest(const RangeTestSpec& spec) : spec_(spec) {}

  void event(const RunEvent& event) override;
  void remark(const std::string&) override {}
  RunRequest take() override { return is_over() ? RunRequest::stop : RunRequest::none; }
  void at(const RunPosition&) override {}

  /// Steps whose update was applied, until the loss diverged.
  const std::vector<RangePoint>& points() const { return points_; }
  bool diverged() const { return diverged_; }
  bool is_over() const { return diverged_ || seen_ >= spec_.steps; }

  /// The point at which the smoothed loss falls most for the same factor of the learning rate. The first tenth of the
  /// steps and the last five points are left out, and all behind the least smoothed loss, where fastai may suggest the
  /// recovery from a spike. Nothing if too few points are left, or the loss nowhere falls.
  std::optional<RangePoint> steepest() const;
  /// The point with the least smoothed loss; nothing without points.
  std::optional<RangePoint> least_loss() const;

 private:
  RangeTestSpec spec_;
  std::vector<RangePoint> points_;
  double average_ = 0;     // biased
  double least_ = 0;       // smoothed loss so far
  std::int64_t seen_ = 0;  // steps
  bool diverged_ = false;
};

}  // namespace gradring::train
