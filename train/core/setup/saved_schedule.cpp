// SPDX-License-Identifier: Apache-2.0
#include "train/core/setup/run_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/core/config/option_sources.h"
#include "train/core/config/resolve.h"
#include "train/core/trainer/training_state.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {
namespace {

/// The number `name`, from 1 on; 1 if there is none.
std::int64_t count_in(const nlohmann::ordered_json& json, const char* name) {
  const auto found = json.find(name);
  const bool is_count = found != json.end() && found->is_number_integer();
  return is_count ? std::max<std::int64_t>(1, found->get<std::int64_t>()) : 1;
}

/// A rate below this share of the peak changes the weights too little to train on.
constexpr double kLeastUseful = 1e-3;

constexpr std::int64_t kMost = std::int64_t{1} << 40;

std::int64_t steps_of_epoch(const nlohmann::ordered_json& about) {
  const std::int64_t samples = std::min(kMost, count_in(about.value("order", nlohmann::ordered_json()), "samples"));
  const std::int64_t of_step = std::min(kMost, count_in(about, kSamplesOfStep));
  return (samples + of_step - 1) / of_step;
}

std::int64_t estimated_steps(const TrainConfig& config, const nlohmann::ordered_json& about) {
  const std::int64_t of_epoch = steps_of_epoch(about);
  const std::int64_t epochs = std::min(config.epochs, kMost / of_epoch);
  const std::int64_t of_epochs = epochs > 0 ? epochs * of_epoch : std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, config.steps > 0 ? std::min(config.steps, of_epochs) : of_epochs);
}

bool same_shape(const ScheduleSpec& a, const ScheduleSpec& b) {
  return a.kind == b.kind && a.warmup_steps == b.warmup_steps && a.step_size == b.step_size && a.gamma == b.gamma &&
         a.least == b.least;
}

/// Why the rates differ: "--lr is 0.002 instead of 0.001".
std::vector<std::string> reasons_of(const RateSchedule& before, const RateSchedule& now) {
  std::vector<std::string> reasons;
  if (before.peak != now.peak) reasons.push_back(fmt::format("--lr is {} instead of {}", now.peak, before.peak));
  if (before.spec.kind != now.spec.kind)
    reasons.push_back(fmt::format("--schedule is {} instead of {}", word_of(now.spec.kind), word_of(before.spec.kind)));
  else if (!same_shape(before.spec, now.spec))
    reasons.push_back(fmt::format("the {} schedule has other options", word_of(now.spec.kind)));
  if (spans_training(now.spec) && before.steps != now.steps)
    reasons.push_back(
        fmt::format("the {} schedule spans {} steps instead of {}", word_of(now.spec.kind), now.steps, before.steps));
  return reasons;
}

}  // namespace

TrainConfig saved_config(const Checkpoint& checkpoint, const std::filesystem::path& from) {
  const auto settings = saved_settings(checkpoint);
  const auto given = settings ? read_known_options(*settings) : std::nullopt;
  if (!given) throw CheckpointError(from, "has no settings of a run", "use a checkpoint of gradring train");
  TrainConfig config;
  try {
    for (const auto& [name, value] : *given) read_saved(config, name, value.text);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(from, fmt::format("has invalid settings: {}", error.what()), "use another checkpoint");
  }
  return config;
}

double RateSchedule::at(std::int64_t applied) const {
  return learning_rate_at(spec, peak, steps, std::clamp<std::int64_t>(applied, 0, steps - 1));
}

double RateSchedule::at(const ParameterGroup& group, std::int64_t applied) const {
  return learning_rate_at(group, spec, peak, {.total = steps, .of_epoch = of_epoch},
                          std::clamp<std::int64_t>(applied, 0, steps - 1));
}

RateSchedule saved_schedule(const Checkpoint& checkpoint, const TrainConfig& saved) {
  const nlohmann::ordered_json& about = *checkpoint.about;
  return {.spec = saved.schedule,
          .peak = saved.learning_rate,
          .steps = about.contains(kTotalSteps) ? count_in(about, kTotalSteps) : estimated_steps(saved, about),
          .of_epoch = steps_of_epoch(about)};
}

std::string describe_rate_change(const RateChange& change) try {
  const auto& [before, now, applied, steps] = change;
  if (applied == 0) return {};
  const double expected = before.at(applied), next = now.at(applied), last = before.at(applied - 1);
  const auto is_useless = [&](double rate) { return rate < kLeastUseful * now.peak; };
  const bool ends_useless = is_useless(next) && now.steps > before.steps;
  std::vector<std::string> reasons = reasons_of(before, now);
  const bool changes = !reasons.empty() && std::abs(next - expected) > 1e-9 * std::max(next, expected);
  if (!changes && !ends_useless) return {};
  if (!changes) reasons = {"the schedule has come down to it"};
  std::string text = fmt::format("the learning rate was {:.1e} in step {} and is {:.1e} in step {}: {}", last, steps,
                                 next, steps + 1, fmt::join(reasons, ", "));
  const bool is_longer = spans_training(now.spec) && before.peak == now.peak && before.spec.kind == now.spec.kind;
  if (ends_useless || (is_longer && is_useless(last)))
    text += fmt::format("; --schedule constant --lr {:.3g} would go on at a tenth of the peak", now.peak / 10);
  else if (is_longer)
    text += fmt::format("; --schedule constant --lr {:.3g} would keep it", last);
  return text;
} catch (const InvalidArgument&) {
  return {};
}

}  // namespace gradring::train
