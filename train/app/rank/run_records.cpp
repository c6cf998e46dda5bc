// SPDX-License-Identifier: Apache-2.0
#include "train/app/rank/run_output.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <string>
#include <vector>

#include "kernels/base/commit.h"
#include "kernels/base/host_name.h"
#include "kernels/host/host_device.h"
#include "train/core/config/options.h"
#include "train/core/setup/resume_command.h"
#include "train/core/trainer/nan_policy.h"
#include "train/options/exit_code.h"
#include "train/options/parse_value.h"

namespace gradring::train {
namespace {

std::vector<std::pair<std::string, std::string>> values_of(const TrainConfig& config) {
  std::vector<std::pair<std::string, std::string>> values;
  for (const TrainOption& option : train_options()) values.emplace_back(option.name, option.show(config));
  return values;
}

Outcome outcome_of(const std::exception& error) {
  if (dynamic_cast<const Preempted*>(&error)) return Outcome::interrupted;
  return dynamic_cast<const DivergedError*>(&error) ? Outcome::diverged : Outcome::failed;
}

}  // namespace

RunHeader run_header(const TrainConfig& resolved, const Compute& compute, const Trainer& trainer,
                     const WorkerEnvironment& environment) {
  utsname system{};
  ::uname(&system);
  RunHeader header{.version = GRADRING_VERSION,
                   .commit = kCommit,
                   .command = own_command(),
                   .start = start_command(started_by(environment)),
                   .name = resolved.name,
                   .tags = comma_separated_words(resolved.tags),
                   .host = host_name(),
                   .machine = fmt::format("{}, Linux {}", kernels::HostDevice().description(), system.release),
                   .device = compute.device->description(),
                   .backend = std::string(compute.backend->name()),
                   .config = values_of(resolved)};
  trainer.describe(header);
  return header;
}

EndRecord end_of(const Summary& summary) {
  return {.steps = summary.steps,
          .seconds = summary.seconds,
          .samples_per_second = summary.samples_per_second,
          .accuracy = summary.accuracy,
          .loss = summary.loss,
          .peak_memory = summary.peak_memory};
}

EndRecord end_of(const std::exception& error, const TrainingProgress& made) {
  return {.outcome = outcome_of(error),
          .reason = message_of(error),
          .steps = made.steps,
          .seconds = made.seconds,
          .samples_per_second = made.seconds > 0 ? static_cast<double>(made.samples) / made.seconds : 0};
}

UnfinishedRun unfinished_run(const std::exception& error, const TrainingProgress& made, const TrainConfig& resolved,
                             int world_size) {
  return {.outcome = outcome_of(error),
          .reason = message_of(error),
          .steps = made.steps,
          .epoch = made.epoch,
          .seconds = made.seconds,
          .samples_per_second = made.seconds > 0 ? static_cast<double>(made.samples) / made.seconds : 0,
          .world_size = world_size,
          .device = shown_device(resolved.device, resolved.simulate_gpu),
          .backend = std::string(word_of(resolved.backend)),
          .precision = std::string(word_of(resolved.precision))};
}

}  // namespace gradring::train
