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
/// made the step before it, and none this one. Each happens once: a training that goes back and makes the step again does not
/// meet it a second time.
class FaultyRequests final : public RunRequests {
 public:
  /// `faults` are this rank's own; `inner` must outlive this.
  FaultyRequests(RunRequests& inner, std::vector<PlannedFault> faults, DoFault do_fault)
      : inner_(inner), faults_(std::move(faults)), do_fault_(std::move(do_fault)) {}

  RunRequest take() override { return inner_.take(); }
  void at(const RunPlace& place) override;
  /// Whether a fault of this kind happens in the step that runs.
  bool in_step_of(FaultKind kind) const;
  /// Those whose step has not come.
  const std::vector<PlannedFault>& to_come() const { return faults_; }

 private:
  RunRequests& inner_;
  std::vector<PlannedFault> faults_;  // to come
  std::vector<PlannedFault> now_;     // of the step that runs
  DoFault do_fault_;
};

}  // namespace gradring::train
