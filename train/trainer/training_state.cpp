// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/training_state.h"

#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "train/checkpoint/checkpoint.h"
#include "train/trainer/checkpoint_checks.h"

namespace gradring::train {
namespace {

constexpr const char* kProgress = "progress";
constexpr const char* kStepState = "step_state";
constexpr const char* kOrder = "order";

}  // namespace

JsonValue plans_of(const nn::Program& program) {
  auto plans = nlohmann::ordered_json::array();
  for (const nn::PlanDescription& plan : program.description())
    plans.push_back({{"layers", plan.layers}, {"by", plan.by}});
  return plans;
}

Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score) {
  return {.step = state.progress.steps,
          .model = std::move(state.replica.model),
          .state = std::move(state.replica.state),
          .about = nlohmann::ordered_json{{"made_by", "gradring " GRADRING_VERSION},
                                          {kProgress, to_json(state.progress)},
                                          {kStepState, to_json(state.replica.step)},
                                          {kSamplesOfStep, state.samples_of_step},
                                          {kSampleShape, to_json(state.sample)},
                                          {kOrder, std::move(*state.order)},
                                          {kCpuLevel, std::move(state.cpu_level)},
                                          {kPlans, std::move(*state.plans)},
                                          {"settings", settings},
                                          {"settings_sha256", sha256_hex(std::as_bytes(std::span(settings)))}},
          .score = score};
}

TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from) {
  const nlohmann::ordered_json& about = *checkpoint.about;
  const auto part = [&about](const char* name) {
    return about.contains(name) ? about[name] : nlohmann::ordered_json();
  };
  return {.progress = progress_in(part(kProgress), from),
          .replica = {.model = std::move(checkpoint.model),
                      .state = std::move(checkpoint.state),
                      .step = step_state_in(part(kStepState), from)},
          .order = part(kOrder)};
}

void CheckpointSaver::wait() {
  std::int64_t busy[1];
  do {
    busy[0] = world_.checkpoints && !world_.checkpoints->is_idle(patience_);
    world_.group.all_reduce_on_host(std::span(busy));
  } while (busy[0] > 0);
}

void CheckpointSaver::report() {
  if (!world_.checkpoints) return;
  for (const std::string& problem : world_.checkpoints->take_problems()) world_.metrics.remark(problem);
  if (stop_on_errors_ && world_.checkpoints->failures() >= 2)
    throw SaveError(
        "two checkpoints in a row could not be saved: free space on the disk, or let the run go on without by "
        "--on-save-error continue");
}

void CheckpointSaver::finish() {
  wait();
  if (!world_.checkpoints) return;
  world_.checkpoints->finish();
  report();
}

}  // namespace gradring::train
