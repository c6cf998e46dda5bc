// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gradring::train {

/// Called around every training step, on the trainer's thread.
class StepHook {
 public:
  virtual ~StepHook() = default;
  /// Before anything of step `step` of the run is enqueued, counted from 1.
  virtual void before_step(std::int64_t step) = 0;
  /// After everything of the step is enqueued.
  virtual void after_step() = 0;
};

}  // namespace gradring::train
