// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nn/backend/backend.h"
#include "train/core/faults/fault.h"

namespace gradring::train {

/// Performs a fault on this process, and says so on stderr before. Returns after a delay, and after a stopped process
/// continues. NaN faults are performed by InjectedFaults::backend.
void print_and_perform(const PlannedFault& fault);

/// Injects the faults of one rank: at the boundary before a step, when all ranks have made the step before it and none
/// has made this one, and in the loss of a step. Each fault happens once, even if the training rolls back and repeats
/// its step.
///
/// Threads   the trainer's.
class InjectedFaults final : public StepHook {
 public:
  using Perform = std::function<void(const PlannedFault&)>;

  /// By default a fault is printed on stderr and performed on this process.
  ///
  /// Errors    as plan_faults.
  InjectedFaults(std::span<const Fault> faults, const FaultedRun& run, int rank, Perform perform = print_and_perform);
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;

  /// Called before each planned fault of any rank, except again after a rollback.
  void announce_to(std::function<void(const PlannedFault&)> announce) { announce_ = std::move(announce); }

  void before_step(std::int64_t step) override;
  void after_step() override { nan_now_ = false; }

  /// `inner` itself, or a backend around it if a NaN is planned for this rank. Valid as long as both this and `inner`.
  nn::Backend& backend(nn::Backend& inner);
  /// Whether the gradients of the current step are NaN.
  bool nan_now() const { return nan_now_; }

  /// The planned faults of every rank, one line each.
  std::vector<std::string> remarks() const;
  /// This rank's faults whose step was not reached, one line each.
  std::vector<std::string> closing_remarks() const;

 private:
  std::vector<PlannedFault> plan_;         // of every rank
  std::vector<PlannedFault> unannounced_;  // of every rank
  std::vector<PlannedFault> pending_;      // of this rank
  std::function<void(const PlannedFault&)> announce_ = [](const PlannedFault&) {};
  Perform perform_;
  bool nan_now_ = false;
  std::unique_ptr<nn::Backend> nan_backend_;
};

}  // namespace gradring::train
