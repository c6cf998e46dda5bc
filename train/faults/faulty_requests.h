// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "train/faults/fault_plan.h"
#include "train/trainer/run_requests.h"

namespace gradring::train {

/// What is done with a fault whose step has come.
using DoFault = std::function<void(const PlannedFault&)>;

/// Stands before whom a trainer asks for requests, and lets faults happen at the boundary before their step: all ranks have
/// made the step before it, and none this one.
class FaultyRequests final : public RunRequests {
 public:
  /// `faults` are this rank's own; `inner` must outlive this.
  FaultyRequests(RunRequests& inner, std::vector<PlannedFault> faults, DoFault do_fault)
      : inner_(inner), faults_(std::move(faults)), do_fault_(std::move(do_fault)) {}

  RunRequest take() override { return inner_.take(); }
  void at(const RunPlace& place) override;
  /// Whether a fault of this kind belongs to the step that runs.
  bool in_step_of(FaultKind kind) const;

 private:
  RunRequests& inner_;
  std::vector<PlannedFault> faults_;
  DoFault do_fault_;
  std::int64_t step_ = 0;  // that runs, counted from 1; 0: none does
};

}  // namespace gradring::train
