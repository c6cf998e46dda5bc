// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/consistent_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/json_members.h"

namespace gradring::train {

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
