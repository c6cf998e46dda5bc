// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/sample_order.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "train/config/usage_error.h"

namespace gradring::train {

nlohmann::ordered_json order_of_samples(const data::Dataset& train_set, std::uint64_t seed) {
  return {{"dataset", train_set.name()}, {"samples", train_set.size()}, {"seed", seed}};
}

void check_order(const OrderCheck& check) {
  const TrainingProgress& progress = check.progress;
  if (progress.position == 0) return;
  const std::string where = fmt::format("{} was made within epoch {}, behind sample {}", check.from.string(),
                                        progress.epoch, progress.position);
  if (check.saved != check.here)
    throw UsageError(
        fmt::format("{} of {}, but here samples come as {}: resume with the options of that run, or from a "
                    "checkpoint at an epoch's end",
                    where, check.saved.dump(), check.here.dump()));
  if (!check.sampler.step_at(progress.position))
    throw UsageError(
        fmt::format("{}, which is no multiple of the {} samples of a step here: choose --global-batch, or "
                    "--batch-size and the number of ranks, so that it is one",
                    where, check.samples_of_step));
}

}  // namespace gradring::train
