// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "train/report/metrics_sink.h"

namespace gradring::train {

/// What a person at a terminal wants to know about the epoch that is running: mean loss and speed, of the steps since it began,
/// was gone on with, or went back.
class EpochSoFar {
 public:
  using Seconds = std::chrono::duration<double>;

  /// Takes the next step; an epoch's first one begins anew.
  void add(const StepRecord& record);

  Seconds time() const { return time_; }
  double mean_loss() const { return mean_loss_; }
  double steps_per_second() const { return per_second(steps_); }
  double samples_per_second() const { return per_second(samples_); }

 private:
  double per_second(std::int64_t count) const {
    return time_.count() > 0 ? static_cast<double>(count) / time_.count() : 0;
  }

  Seconds time_{0};
  double mean_loss_ = 0;
  std::int64_t losses_ = 0;  // that are numbers
  std::int64_t steps_ = 0;
  std::int64_t samples_ = 0;
};

/// "Step 12 is skipped: the gradient of fc_layers.0.weight is not finite (loss scale 65536)"
std::string skip_text(const StepRecord& record);

/// "Epoch 1: test accuracy 97.12 % (9712 of 10000), loss 0.0912"
std::string eval_text(const EvalRecord& record);

}  // namespace gradring::train
