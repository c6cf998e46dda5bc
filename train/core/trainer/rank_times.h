// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {

/// One rank's times since they were last collected. A sum over the ranks collects them, since each rank adds its own at
/// a place of its own, so they can travel with other sums.
///
/// Threads   the trainer's.
class RankTimes {
 public:
  void add(const StepRecord& record);
  /// Appends this rank's times, and zeros for the others. `memory_bytes` is its peak.
  void append_to(std::vector<std::int64_t>& sums, const comm::ProcessGroup& group, std::size_t memory_bytes) const;
  /// The record after step `step`, from what append_to appended on all ranks; starts anew.
  RanksRecord take(std::span<const std::int64_t> sums, std::int64_t step);

 private:
  std::int64_t steps_ = 0;
  std::chrono::nanoseconds total_{0};
  std::chrono::nanoseconds data_wait_{0};
  std::chrono::nanoseconds exposed_communication_{0};
};

}  // namespace gradring::train
