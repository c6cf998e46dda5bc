// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/on_nan.h"

#include <fmt/format.h>

#include <cmath>

#include "train/precision/loss_scaling.h"

namespace gradring::train {
namespace {

std::string text_of(double loss) { return std::isnan(loss) ? "no number" : "infinite"; }

[[noreturn]] void give_up(const std::string& trouble, double learning_rate) {
  throw DivergedError(fmt::format("{}: lower --lr (it is {})", trouble, learning_rate));
}

}  // namespace

OnNan on_nan_named(std::string_view name) {
  if (name == "auto") return OnNan::automatic;
  if (name == "skip") return OnNan::skip;
  if (name == "halt") return OnNan::halt;
  if (name == "rollback") return OnNan::roll_back;
  throw InvalidArgument(fmt::format("--on-nan is '{}', but must be auto, skip, halt or rollback", name));
}

void check_finite(double loss, const std::string& what, double learning_rate) {
  if (!std::isfinite(loss)) give_up(fmt::format("the {} is {}", what, text_of(loss)), learning_rate);
}

std::string StepJudge::parameter_of(const StepResult& result) const {
  return result.non_finite < 0 ? "" : spec_.parameters[static_cast<std::size_t>(result.non_finite)].name;
}

std::string StepJudge::trouble_of(std::int64_t step, const StepResult& result) const {
  if (!result.skipped) return fmt::format("the loss of step {} is {}", step, text_of(result.loss));
  const bool even = result.loss_scale <= kLeastLossScale;
  const std::string scale = spec_.scales_loss
                                ? fmt::format("{} at a loss scale of {}", even ? " even" : "", result.loss_scale)
                                : std::string();
  const std::string parameter = parameter_of(result);
  if (parameter.empty()) return fmt::format("the gradients of step {} are not finite{}", step, scale);
  return fmt::format("the gradients of step {} are not finite{}, the first of them, as backward goes, in {}", step,
                     scale, parameter);
}

/// With a loss scale, an overflow says no more than that it was too large, unless the loss was none before it was scaled.
bool StepJudge::may_be_skipped(const StepResult& result) const {
  const bool next_is_smaller = spec_.scales_loss && result.loss_scale > kLeastLossScale;
  switch (spec_.on_nan) {
    case OnNan::automatic: return next_is_smaller;
    case OnNan::skip: return next_is_smaller || !spec_.scales_loss;
    case OnNan::halt: return false;
    case OnNan::roll_back: return next_is_smaller && std::isfinite(result.loss);
  }
  return false;
}

StepJudge::Verdict StepJudge::judge(const StepResult& result) const {
  if (result.skipped ? may_be_skipped(result) : std::isfinite(result.loss)) return Verdict::go_on;
  return spec_.on_nan == OnNan::roll_back ? Verdict::go_back : Verdict::end;
}

void StepJudge::end(std::int64_t step, const StepResult& result) const {
  if (result.skipped && spec_.scales_loss && result.loss_scale > kLeastLossScale)
    throw DivergedError(fmt::format("{}: leave out --on-nan halt, and the loss scale falls; or lower --lr (it is {})",
                                    trouble_of(step, result), spec_.learning_rate));
  give_up(trouble_of(step, result), spec_.learning_rate);
}

void Rollbacks::count(std::int64_t step, const std::string& trouble) {
  step_ = step;
  if (made_ == kMost)
    throw DivergedError(
        fmt::format("{}, and going back to the newest checkpoint did not help {} times: lower --lr", trouble, kMost));
  ++made_;
}

void Rollbacks::saved(std::int64_t steps) {
  if (steps >= step_) made_ = 0;
}

}  // namespace gradring::train
