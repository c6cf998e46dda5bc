// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "kernels/base/error.h"
#include "nn/layers/parameter.h"
#include "train/core/config/choices.h"
#include "train/core/trainer/train_step.h"
#include "train/core/trainer/trainer_world.h"

namespace gradring::train {

/// The loss of a step or of the test set is not finite, or the gradients are not and skipping does not help, or the
/// weights or outputs of a trained model are not. Exit code 5.
class DivergedError : public Error, public ExitsWith<kDiverged> {
 public:
  using Error::Error;
};

/// Errors    DivergedError unless the loss is finite: "the test loss after step 12 is NaN: lower --lr (now 0.1)".
void check_finite(double loss, const std::string& what, double learning_rate);

/// Decides from the result of a step whether training continues. Results have the same bits on every rank, so all ranks
/// decide alike.
class NanPolicy {
 public:
  struct Spec {
    OnNan on_nan = OnNan::automatic;
    bool scales_loss = false;  ///< the step after a skipped one has a smaller loss scale
    double learning_rate = 0;  ///< for messages
    std::span<const nn::Parameter> parameters;
  };
  explicit NanPolicy(const Spec& spec) : spec_(spec) {}

  enum class Action : std::uint8_t { proceed, roll_back, end };
  Action action_for(const StepResult& result) const;
  /// Errors    always DivergedError: the problem, and what to do.
  [[noreturn]] void end(std::int64_t step, const StepResult& result) const;
  /// To be called at the end of a run with the state after its last step.
  ///
  /// Errors    DivergedError if all steps were skipped.
  void check_updates(const kernels::step_state::StepState& state) const;

  /// "the gradients of step 12 are not finite, first in fc_layers.0.weight (in backward order)"
  std::string problem_of(std::int64_t step, const StepResult& result) const;
  /// The parameter with the first non-finite gradient; empty if unknown.
  std::string parameter_of(const StepResult& result) const;

 private:
  bool may_be_skipped(const StepResult& result) const;

  Spec spec_;
};

/// Limits rollbacks that make no progress.
class RollbackLimit {
 public:
  static constexpr int kMost = 3;

  /// Counts a rollback that undoes step `step`.
  ///
  /// Errors    DivergedError with `problem` after kMost rollbacks without progress.
  void count(std::int64_t step, const std::string& problem);
  /// To be called when a checkpoint after `steps` steps is saved: progress, if the undone step is among them.
  void saved(std::int64_t steps);
  int made() const { return made_; }

 private:
  std::int64_t step_ = 0;
  int made_ = 0;
};

/// Returns to the newest checkpoint (--on-nan rollback). All ranks do so at the same step without communicating.
///
/// Threads   the trainer's. The world must outlive it.
class Rollback {
 public:
  explicit Rollback(const TrainerWorld& world) : world_(world) {}

  /// Requests that step `step` and all later ones are undone. Every rank calls it for the same step.
  void request(std::int64_t step, std::string problem) { undone_ = {.step = step, .problem = std::move(problem)}; }
  bool requested() const { return undone_.has_value(); }
  /// Whether to act on it after `enqueued` steps: once all ranks have taken all results (`all_taken`), or once even the
  /// slowest rank has seen the result of that step.
  bool is_due(std::int64_t enqueued, bool all_taken) const;
  /// Collective. The checkpoint that rank 0 reads; rank 0 must not be writing one.
  ///
  /// Errors    DivergedError if there is no checkpoint, or the limit is reached; comm::CommError; on rank 0
  ///           errors of reading.
  ResumePoint take();
  /// Reports that training resumes after step `steps`.
  void done(std::int64_t steps, std::int64_t epoch);
  /// To be called on every rank when a checkpoint after `steps` steps is saved.
  void saved(std::int64_t steps) { limit_.saved(steps); }

 private:
  struct Undone {
    std::int64_t step = 0;
    std::string problem;
  };
  std::optional<ResumePoint> read() const;

  const TrainerWorld& world_;
  std::optional<Undone> undone_;
  std::string problem_;  // that caused the last rollback
  RollbackLimit limit_;
};

}  // namespace gradring::train
