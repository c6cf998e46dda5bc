// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "data/datasets/dataset.h"
#include "data/samplers/step_sampler.h"
#include "train/trainer/training_progress.h"

namespace gradring::train {

/// In what order samples come to a training, as a checkpoint says it: what must be the same for an epoch to go on.
nlohmann::ordered_json order_of_samples(const data::Dataset& train_set, std::uint64_t seed);

/// Where a checkpoint stands, and how samples come here.
struct OrderCheck {
  const TrainingProgress& progress;
  const nlohmann::ordered_json& saved;
  const nlohmann::ordered_json& here;
  const data::StepSampler& sampler;
  std::int64_t samples_of_step = 0;
  const std::filesystem::path& from;
};

/// An epoch that was begun goes on with the samples that were not seen yet, or not at all.
///
/// Errors    UsageError that says what is different, and what to do.
void check_order(const OrderCheck& check);

}  // namespace gradring::train
