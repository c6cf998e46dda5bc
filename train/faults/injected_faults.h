// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "train/faults/faulty_requests.h"
#include "train/faults/nan_backend.h"

namespace gradring::train {

/// The faults of one rank, in the two places where they touch its training: before each step, and in its losses.
class InjectedFaults {
 public:
  /// Faults are done to this process, behind a word on stderr. `requests` and `backend` must outlive this.
  ///
  /// Errors    as plan_faults.
  InjectedFaults(std::span<const Fault> faults, const FaultedWorld& world, int rank, RunRequests& requests,
                 nn::Backend& backend);
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;

  /// For the trainer, in the place of those that were given.
  RunRequests& requests() { return requests_; }
  nn::Backend& backend() { return backend_; }
  /// What a person should know beforehand: all faults of this attempt, of every rank.
  std::vector<std::string> remarks() const;
  /// The same afterwards: this rank's faults whose step has not come.
  std::vector<std::string> closing_remarks() const;

 private:
  std::vector<PlannedFault> plan_;
  FaultyRequests requests_;
  NanBackend backend_;
};

}  // namespace gradring::train
