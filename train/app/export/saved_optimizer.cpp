// SPDX-License-Identifier: Apache-2.0
#include "train/app/export/saved_optimizer.h"

#include <fmt/format.h>

#include "train/core/config/train_config.h"
#include "train/core/setup/saved_schedule.h"
#include "train/core/trainer/torch_optimizer_state.h"
#include "train/core/trainer/training_state.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"

namespace gradring::train {

TorchOptimizer saved_optimizer(const NamedTensors& named, const nn::Model& model) {
  if (named.is_file)
    throw UsageError(fmt::format("{} holds no optimizer: name a checkpoint or a run directory", named.from.string()));
  const TrainConfig config = saved_config(named.contents, named.from);
  const TrainingState state = from_checkpoint(named.contents, named.from);
  const std::int32_t applied = state.replica.step.applied_steps;
  double rate = 0;
  try {
    rate = saved_schedule(named.contents, config).at(applied);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(named.from, fmt::format("has an invalid schedule: {}", error.what()),
                          "use another checkpoint");
  }
  return to_torch_optimizer({.state = state.replica.state, .applied_steps = applied}, config.optimizer, rate,
                            nn::parameters_of(model), named.from);
}

}  // namespace gradring::train
