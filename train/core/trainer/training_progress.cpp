// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/training_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/json_members.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;
using kernels::step_state::StepState;

/// A run ends long before: its steps are counted in 32 bits on the device.
constexpr std::int32_t kMostSteps = 2'000'000'000;
/// What a double holds exactly, and sums of such counts do not overflow.
constexpr std::int64_t kMostCounted = std::int64_t{1} << 53;
/// 30 million years; what is computed with it stays finite.
constexpr double kMostSeconds = 1e15;
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr const char* kImported = "imported_steps";
constexpr const char* kBestAccuracy = "best_accuracy";
constexpr const char* kEpochsSinceBest = "epochs_since_best";

template <class Number>
struct Range {
  Number least, most;
};

struct Reader {
  JsonMembers members;

  template <class Number>
  void operator()(const char* name, Number& number, Range<Number> range) const {
    number = members.number(name, range.least, range.most);
  }
};

struct Writer {
  Json& json;

  template <class Number>
  void operator()(const char* name, const Number& number, Range<Number>) const {
    json[name] = number;
  }
};

/// Every field with its name and its range, for both directions.
template <class Progress, class Visit>
void visit_progress(Progress& progress, const Visit& visit) {
  constexpr Range<std::int64_t> kCount{0, kMostCounted};
  visit("steps", progress.steps, {0, kMostSteps});
  visit("epoch", progress.epoch, {0, kMostSteps});
  visit("position", progress.position, kCount);
  visit("samples", progress.samples, kCount);
  visit("epoch_loss_sum", progress.epoch_loss_sum, {-kLargest, kLargest});
  visit("epoch_samples", progress.epoch_samples, kCount);
  visit("seconds", progress.seconds, {0, kMostSeconds});
}

/// What the next step reads; the rest belongs to the step before.
template <class State, class Visit>
void visit_state(State& state, const Visit& visit) {
  visit("applied_steps", state.applied_steps, {0, kMostSteps});
  visit("skipped_steps", state.skipped_steps, {0, kMostSteps});
  visit("loss_scale", state.loss_scale, {std::numeric_limits<float>::min(), std::numeric_limits<float>::max()});
  visit("growth_tracker", state.growth_tracker, {0, kMostSteps});
}

}  // namespace

Json to_json(const TrainingProgress& progress) {
  Json json;
  visit_progress(progress, Writer{json});
  json[kImported] = progress.imported_steps;
  if (progress.best_accuracy) {
    json[kBestAccuracy] = *progress.best_accuracy;
    json[kEpochsSinceBest] = progress.epochs_since_best;
  }
  return json;
}

Json to_json(const StepState& state) {
  Json json;
  visit_state(state, Writer{json});
  return json;
}

TrainingProgress progress_in(const Json& json, const std::filesystem::path& path) {
  TrainingProgress progress;
  const JsonMembers members(json, path);
  visit_progress(progress, Reader{members});
  progress.imported_steps =
      json.contains(kImported) ? members.number<std::int64_t>(kImported, 0, kMostSteps) : kUnknownSteps;
  if (json.contains(kBestAccuracy)) {
    progress.best_accuracy = members.number<double>(kBestAccuracy, 0, 1);
    progress.epochs_since_best = members.number<std::int64_t>(kEpochsSinceBest, 0, kMostSteps);
  }
  return progress;
}

StepState step_state_in(const Json& json, const std::filesystem::path& path) {
  StepState state;
  visit_state(state, Reader{JsonMembers(json, path)});
  return state;
}

void check_consistent(const CheckpointCounts& counts, const std::filesystem::path& file) {
  const auto require = [&file](bool holds, const char* name, std::int64_t value, const std::string& expected) {
    if (!holds)
      throw CheckpointError(file, fmt::format("has '{}' = {}, expected {}", name, value, expected),
                            kUseAnotherCheckpoint);
  };
  const TrainingProgress& progress = counts.progress;
  const std::int64_t steps = progress.steps, position = progress.position;
  require(steps == counts.step, "progress.steps", steps, fmt::format("its 'step', {}", counts.step));
  require(progress.samples >= steps && (steps > 0 || progress.samples == 0), "progress.samples", progress.samples,
          fmt::format("one or more in each of {} steps", steps));
  require(position <= progress.samples, "progress.position", position,
          fmt::format("at most 'progress.samples', {}", progress.samples));
  // The last step may be filled up with repeated samples.
  const std::int64_t most_position = counts.samples_of_epoch + counts.samples_of_step;
  require(counts.samples_of_epoch == 0 || counts.samples_of_step == 0 || position < most_position, "progress.position",
          position, fmt::format("a position within the {} samples of an epoch", counts.samples_of_epoch));
  const std::int64_t begun = position > 0 ? 1 : 0;
  require(progress.epoch + begun <= steps, "progress.epoch", progress.epoch,
          fmt::format("at most {} after {} steps", std::max<std::int64_t>(0, steps - begun), steps));
  require(progress.epoch_samples <= (begun ? position : progress.samples), "progress.epoch_samples",
          progress.epoch_samples, fmt::format("at most the {} of the epoch", begun ? position : progress.samples));

  const std::int64_t applied = counts.state.applied_steps, skipped = counts.state.skipped_steps;
  require(skipped <= steps, "step_state.skipped_steps", skipped, fmt::format("at most the {} steps", steps));
  const std::int64_t all = steps + progress.imported_steps - skipped;
  require(applied == all, "step_state.applied_steps", applied,
          fmt::format("{}: {} steps, {} of them skipped, and {} of an imported optimizer", all, steps, skipped,
                      progress.imported_steps));
  require(counts.state.growth_tracker <= applied, "step_state.growth_tracker", counts.state.growth_tracker,
          fmt::format("at most the {} applied steps", applied));
}

}  // namespace gradring::train
