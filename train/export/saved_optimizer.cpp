// SPDX-License-Identifier: Apache-2.0
#include "train/export/saved_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "nn/parameter/parameter.h"
#include "train/checkpoint/error.h"
#include "train/config/option_sources.h"
#include "train/config/options.h"
#include "train/optim/optimizer.h"
#include "train/options/usage_error.h"
#include "train/setup/run_settings.h"
#include "train/trainer/torch_optimizer_state.h"
#include "train/trainer/training_state.h"

namespace gradring::train {
namespace {

/// The settings of the run that saved the checkpoint, without a check of their combinations.
TrainConfig config_in(const Checkpoint& checkpoint, const std::filesystem::path& from) {
  const auto settings = saved_settings(checkpoint);
  const auto given = settings ? read_known_options(*settings) : std::nullopt;
  if (!given) throw CheckpointError(from, "has no settings of a run", "use a checkpoint of gradring train");
  TrainConfig config;
  try {
    for (const auto& [name, value] : *given) find_option(name)->read(config, value.text);
  } catch (const InvalidArgument& error) {
    throw CheckpointError(from, fmt::format("has invalid settings: {}", error.what()), "use another checkpoint");
  }
  return config;
}

/// Steps of the whole training, which the schedule knows; 1 or more.
std::int64_t steps_in(const TrainConfig& config, const nlohmann::ordered_json& about) {
  static constexpr std::int64_t kMost = std::int64_t{1} << 40;
  const auto number = [](const nlohmann::ordered_json& json, const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    const bool is_count = json.is_object() && found != json.end() && found->is_number_integer();
    return is_count ? std::clamp<std::int64_t>(found->get<std::int64_t>(), 1, kMost) : std::int64_t{1};
  };
  const auto order = about.find("order");
  const std::int64_t samples = order == about.end() ? 1 : number(*order, "samples");
  const std::int64_t of_step = number(about, kSamplesOfStep);
  const std::int64_t of_epoch = (samples + of_step - 1) / of_step;
  const std::int64_t epochs = std::min(config.epochs, kMost / of_epoch);
  const std::int64_t of_epochs = epochs > 0 ? epochs * of_epoch : std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(1, config.steps > 0 ? std::min(config.steps, of_epochs) : of_epochs);
}

}  // namespace

TorchOptimizer saved_optimizer(const NamedTensors& named, const nn::Model& model) {
  if (named.is_file)
    throw UsageError(fmt::format("{} holds no optimizer: name a checkpoint or a run directory", named.from.string()));
  const TrainConfig config = config_in(named.contents, named.from);
  const std::int64_t total = steps_in(config, *named.contents.about);
  const TrainingState state = from_checkpoint(named.contents, named.from);
  const std::int32_t applied = state.replica.step.applied_steps;
  double rate = 0;
  try {
    rate = learning_rate_at(config.schedule, config.learning_rate, total, std::min<std::int64_t>(applied, total - 1));
  } catch (const InvalidArgument& error) {
    throw CheckpointError(named.from, fmt::format("has an invalid schedule: {}", error.what()),
                          "use another checkpoint");
  }
  return to_torch_optimizer({.state = state.replica.state, .applied_steps = applied}, config.optimizer, rate,
                            nn::parameters_of(model), named.from);
}

}  // namespace gradring::train
