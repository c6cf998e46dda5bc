// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/nan_policy.h"

#include <fmt/format.h>

#include <cmath>
#include <vector>

#include "train/core/trainer/from_config.h"

namespace gradring::train {
namespace {

std::string text_of(double loss) { return std::isnan(loss) ? "NaN" : "infinite"; }

[[noreturn]] void give_up(const std::string& problem, double learning_rate) {
  throw DivergedError(fmt::format("{}: lower --lr (now {})", problem, learning_rate));
}

}  // namespace

void check_finite(double loss, const std::string& what, double learning_rate) {
  if (!std::isfinite(loss)) give_up(fmt::format("the {} is {}", what, text_of(loss)), learning_rate);
}

std::string NanPolicy::parameter_of(const StepResult& result) const {
  return result.non_finite < 0 ? "" : spec_.parameters[static_cast<std::size_t>(result.non_finite)].name;
}

std::string NanPolicy::problem_of(std::int64_t step, const StepResult& result) const {
  if (!result.skipped) return fmt::format("the loss of step {} is {}", step, text_of(result.loss));
  const bool even = result.loss_scale <= kLeastLossScale;
  const std::string scale = spec_.scales_loss
                                ? fmt::format("{} at a loss scale of {}", even ? " even" : "", result.loss_scale)
                                : std::string();
  const std::string parameter = parameter_of(result);
  if (parameter.empty()) return fmt::format("the gradients of step {} are not finite{}", step, scale);
  return fmt::format("the gradients of step {} are not finite{}, first in {} (in backward order)", step, scale,
                     parameter);
}

/// With loss scaling, an overflow only means that the scale is too large, unless the unscaled loss is not finite.
bool NanPolicy::may_be_skipped(const StepResult& result) const {
  const bool next_is_smaller = spec_.scales_loss && result.loss_scale > kLeastLossScale;
  switch (spec_.on_nan) {
    case OnNan::automatic: return next_is_smaller;
    case OnNan::skip: return next_is_smaller || !spec_.scales_loss;
    case OnNan::halt: return false;
    case OnNan::roll_back: return next_is_smaller && std::isfinite(result.loss);
  }
  return false;
}

NanPolicy::Action NanPolicy::action_for(const StepResult& result) const {
  if (result.skipped ? may_be_skipped(result) : std::isfinite(result.loss)) return Action::proceed;
  return spec_.on_nan == OnNan::roll_back ? Action::roll_back : Action::end;
}

void NanPolicy::end(std::int64_t step, const StepResult& result) const {
  if (result.skipped && spec_.scales_loss && result.loss_scale > kLeastLossScale)
    throw DivergedError(
        fmt::format("{}: leave out --on-nan halt to lower the loss scale instead, or lower --lr (now {})",
                    problem_of(step, result), spec_.learning_rate));
  give_up(problem_of(step, result), spec_.learning_rate);
}

void NanPolicy::check_updates(const kernels::step_state::StepState& state) const {
  if (state.applied_steps > 0 || state.skipped_steps == 0) return;
  const std::string skipped =
      fmt::format("no weight has changed: the gradients of all {} steps were not finite", state.skipped_steps);
  if (!spec_.scales_loss) give_up(skipped, spec_.learning_rate);
  throw DivergedError(fmt::format(
      "{}, and the loss scale fell to {}: lower --loss-scale, or resume with more steps, which lower it further",
      skipped, state.loss_scale));
}

void RollbackLimit::count(std::int64_t step, const std::string& problem) {
  step_ = step;
  if (made_ == kMost)
    throw DivergedError(
        fmt::format("{}, and {} rollbacks to the newest checkpoint did not help: lower --lr", problem, kMost));
  ++made_;
}

void RollbackLimit::saved(std::int64_t steps) {
  if (steps >= step_) made_ = 0;
}

bool Rollback::is_due(std::int64_t enqueued, bool all_taken) const {
  if (!undone_) return false;
  const bool runs_ahead = world_.device.id().kind == kernels::DeviceKind::cuda;
  return all_taken || enqueued >= undone_->step + (runs_ahead ? TrainStep::kMostAhead : 0);
}

ResumePoint Rollback::take() {
  const Undone undone = *std::exchange(undone_, std::nullopt);
  problem_ = undone.problem;
  limit_.count(undone.step, problem_);
  std::optional<ResumePoint> newest = read();
  const std::string from = world_.group.broadcast_on_host(newest ? newest->from.string() : "", 0);
  if (from.empty())
    throw DivergedError(problem_ +
                        ", and there is no checkpoint to roll back to: lower --lr, or save earlier with "
                        "--save-every-steps");
  return newest ? std::move(*newest) : ResumePoint{.checkpoint = {}, .from = from};
}

std::optional<ResumePoint> Rollback::read() const {
  if (!world_.newest_checkpoint) return std::nullopt;
  std::vector<std::string> remarks;
  auto newest = world_.newest_checkpoint(remarks);
  for (const std::string& remark : remarks) world_.metrics.remark(remark);
  return newest;
}

void Rollback::done(std::int64_t steps, std::int64_t epoch) {
  world_.metrics.rolled_back(steps, epoch);
  world_.metrics.remark(
      fmt::format("{}: went back to step {} (time {} of {})", problem_, steps, limit_.made(), RollbackLimit::kMost));
}

}  // namespace gradring::train
