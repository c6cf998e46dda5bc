// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/range_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

constexpr double kSmoothing = 0.98;
constexpr double kDivergence = 4;          // times the least smoothed loss
constexpr std::int64_t kSkippedAtEnd = 5;  // points: there the loss may already diverge

}  // namespace

TrainConfig range_test_config(TrainConfig config, const RangeTestSpec& spec) {
  for (GroupOverride& group : config.optimizer.groups) {
    group.epochs.reset();
    if (!group.learning_rate) continue;
    if (config.learning_rate == 0)
      throw UsageError(fmt::format(
          "the lr of --group '{}' keeps its ratio to --lr, which is 0: give the --lr of a training", group.pattern));
    group.learning_rate = *group.learning_rate / config.learning_rate * spec.most;
  }
  config.schedule = {.kind = ScheduleKind::exponential, .least = spec.least};
  config.learning_rate = spec.most;
  config.steps = spec.steps;
  config.epochs = 0;
  config.on_nan = OnNan::skip;
  config.resume = "none";
  config.eval_every = config.save_every_steps = config.check_replicas = 0;
  return config;
}

void RangeTest::event(const RunEvent& event) {
  const auto* record = std::get_if<StepRecord>(&event);
  if (record == nullptr || is_over()) return;
  ++seen_;
  const bool overflow_of_scale = record->skipped && record->loss_scale != 1;  // the next step has a smaller one
  if (!std::isfinite(record->loss) || (record->skipped && !overflow_of_scale)) {
    diverged_ = true;
    return;
  }
  if (record->skipped) return;
  average_ = kSmoothing * average_ + (1 - kSmoothing) * record->loss;
  const double smoothed = average_ / (1 - std::pow(kSmoothing, static_cast<double>(points_.size() + 1)));
  least_ = points_.empty() ? smoothed : std::min(least_, smoothed);
  points_.push_back(
      {.step = record->step, .learning_rate = record->learning_rate, .loss = record->loss, .smoothed = smoothed});
  diverged_ = smoothed > kDivergence * least_;
}

std::optional<RangePoint> RangeTest::steepest() const {
  const auto skipped = static_cast<std::size_t>(spec_.steps / 10);
  if (points_.size() < skipped + static_cast<std::size_t>(kSkippedAtEnd) + 2) return std::nullopt;
  const auto kept = std::span(points_).subspan(skipped, points_.size() - skipped - kSkippedAtEnd);
  std::optional<RangePoint> found;
  double least = 0;
  const std::int64_t lowest = least_loss()->step;
  for (std::size_t i = 0; i + 1 < kept.size() && kept[i].step < lowest; ++i) {
    const double slope = (kept[i + 1].smoothed - kept[i].smoothed) /
                         (std::log(kept[i + 1].learning_rate) - std::log(kept[i].learning_rate));
    if (slope >= least) continue;
    least = slope;
    found = kept[i];
  }
  return found;
}

std::optional<RangePoint> RangeTest::least_loss() const {
  const auto found = std::ranges::min_element(points_, {}, &RangePoint::smoothed);
  return found == points_.end() ? std::nullopt : std::optional(*found);
}

}  // namespace gradring::train
