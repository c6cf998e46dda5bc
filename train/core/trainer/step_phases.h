// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "train/core/ddp/distributed_data_parallel.h"

namespace gradring::train {

/// Times of the parts of a step, summed over its passes, without waits for other ranks.
struct StepPhases {
  std::chrono::nanoseconds forward{0};    ///< with the preparation of the batch
  std::chrono::nanoseconds backward{0};   ///< with the loss
  std::chrono::nanoseconds optimizer{0};  ///< with the check for non-finite gradients
};

/// In seconds; nothing if the phases are unknown.
inline std::optional<double> seconds_of(const std::optional<StepPhases>& phases,
                                        std::chrono::nanoseconds StepPhases::*phase) {
  if (!phases) return std::nullopt;
  return std::chrono::duration<double>(*phases.*phase).count();
}

/// Measures phases on a stream that runs its work in the calling thread, as the compute stream of a CPU does.
///
/// Cost      a clock read for each call.
/// Threads   the trainer's. `ddp` must outlive it.
class PhaseClock {
 public:
  explicit PhaseClock(const DistributedDataParallel& ddp) : ddp_(ddp) {}

  void begin() { last_ = worked(); }
  /// Adds the time since the last call of either to `phase`.
  void end(std::chrono::nanoseconds& phase) {
    const std::chrono::nanoseconds now = worked();
    phase += now - last_;
    last_ = now;
  }

 private:
  /// A clock that stops while the compute stream waits for other ranks.
  std::chrono::nanoseconds worked() const {
    return std::chrono::steady_clock::now().time_since_epoch() - ddp_.waited();
  }

  const DistributedDataParallel& ddp_;
  std::chrono::nanoseconds last_{0};
};

}  // namespace gradring::train
