// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/runtime/error.h"
#include "nn/parameter/parameter.h"
#include "train/trainer/train_step.h"

namespace gradring::train {

/// A loss, of a step or of the test set, is no longer a finite number, or the gradients are none and nothing mends that. Exit
/// code 5.
class DivergedError : public Error {
 public:
  using Error::Error;
};

/// What a training does where gradients are not finite (--on-nan).
enum class OnNan : std::uint8_t {
  automatic,  ///< skip where the loss is scaled, else halt; without scaling and clipping nobody looks
  skip,       ///< leave out the step
  halt,       ///< end with DivergedError
  roll_back,  ///< go back to the newest checkpoint; what a smaller loss scale mends is skipped
};

/// Errors    InvalidArgument for another word than auto, skip, halt and rollback.
OnNan on_nan_named(std::string_view name);

/// "the test loss after step 12 is no number: lower --lr (it is 0.1)"
///
/// Errors    that, as DivergedError, unless the loss is a finite number.
void check_finite(double loss, const std::string& what, double learning_rate);

/// What becomes of a training with the result of a step. It has the same bits on every rank, so all ranks judge alike.
class StepJudge {
 public:
  struct Spec {
    OnNan on_nan = OnNan::automatic;
    bool scales_loss = false;  ///< a skipped step is followed by one with a smaller loss scale
    double learning_rate = 0;  ///< for messages
    std::span<const nn::Parameter> parameters;
  };
  explicit StepJudge(const Spec& spec) : spec_(spec) {}

  enum class Verdict : std::uint8_t { go_on, go_back, end };
  Verdict judge(const StepResult& result) const;
  /// Errors    DivergedError, always: what the trouble is, and what to do.
  [[noreturn]] void end(std::int64_t step, const StepResult& result) const;

  /// "the gradients of step 12 are not finite, the first of them, as backward goes, in fc_layers.0.weight"
  std::string trouble_of(std::int64_t step, const StepResult& result) const;
  /// The parameter whose gradient was the first that was not finite; empty where that is not known, or all were.
  std::string parameter_of(const StepResult& result) const;

 private:
  bool may_be_skipped(const StepResult& result) const;

  Spec spec_;
};

/// Counts how often a training went back without getting any further.
class Rollbacks {
 public:
  static constexpr int kMost = 3;

  /// Step `step` is to be undone.
  ///
  /// Errors    DivergedError with `trouble`, if that was tried often enough.
  void count(std::int64_t step, const std::string& trouble);
  /// A checkpoint behind `steps` steps was saved: if that is as far as the trouble, it is over.
  void saved(std::int64_t steps);
  int made() const { return made_; }

 private:
  std::int64_t step_ = 0;
  int made_ = 0;
};

}  // namespace gradring::train
