// SPDX-License-Identifier: Apache-2.0
#include "train/launch/restart_policy.h"

#include <fmt/format.h>

#include <algorithm>

namespace gradring::train {
namespace {

constexpr int kMostFruitless = 3;

}  // namespace

RestartDecision RestartPolicy::after_failure(int code, std::optional<std::int64_t> step) {
  fruitless_ = made_progress(step) ? 0 : fruitless_ + 1;
  if (options_.most == 0) return {};
  if (std::ranges::find(options_.final_codes, code) != options_.final_codes.end())
    return {.reason = fmt::format("code {} is no end that another attempt could mend", code)};
  if (restarts_ == options_.most) return {.reason = fmt::format("all {} restarts are used up", options_.most)};

  const bool progress_counts = options_.min_progress_steps ? *options_.min_progress_steps > 0 : step.has_value();
  if (progress_counts && fruitless_ >= kMostFruitless)
    return {.reason = fmt::format("{} attempts in a row came less than {} steps further", fruitless_,
                                  options_.min_progress_steps.value_or(1))};
  ++restarts_;
  return {.again = true, .wait = backoff()};
}

bool RestartPolicy::made_progress(std::optional<std::int64_t> step) {
  if (!step) return false;
  const std::int64_t least = std::max<std::int64_t>(1, options_.min_progress_steps.value_or(1));
  if (*step - furthest_.value_or(0) < least) return false;
  furthest_ = step;
  return true;
}

std::chrono::milliseconds RestartPolicy::backoff() const {
  if (fruitless_ <= 1) return {};
  auto wait = options_.first_backoff;
  for (int i = 2; i < fruitless_ && wait < options_.longest_backoff; ++i) wait *= 2;
  return std::min(wait, options_.longest_backoff);
}

}  // namespace gradring::train
