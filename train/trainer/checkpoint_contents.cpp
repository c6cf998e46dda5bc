// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/checkpoint_contents.h"

#include <utility>

#include "train/checkpoint/meta_file.h"
#include "train/trainer/recorded_cpu_level.h"
#include "train/trainer/sample_shape.h"

namespace gradring::train {
namespace {

constexpr const char* kProgress = "progress";
constexpr const char* kStepState = "step_state";
constexpr const char* kOrder = "order";

}  // namespace

nlohmann::ordered_json plans_of(const nn::Program& program) {
  auto plans = nlohmann::ordered_json::array();
  for (const nn::PlanDescription& plan : program.description())
    plans.push_back({{"layers", plan.layers}, {"by", plan.by}});
  return plans;
}

Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score) {
  return {.step = state.progress.steps,
          .model = std::move(state.replica.model),
          .state = std::move(state.replica.state),
          .about = {{"made_by", "gradring " GRADRING_VERSION},
                    {kProgress, to_json(state.progress)},
                    {kStepState, to_json(state.replica.step)},
                    {kSamplesOfStep, state.samples_of_step},
                    {kSampleShape, to_json(state.sample)},
                    {kOrder, std::move(state.order)},
                    {kCpuLevel, std::move(state.cpu_level)},
                    {kPlans, std::move(state.plans)},
                    {"settings", settings},
                    {"settings_sha256", sum_of(std::as_bytes(std::span(settings)))}},
          .score = score};
}

TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from) {
  const auto& about = checkpoint.about;
  const auto part = [&about](const char* name) {
    return about.contains(name) ? about[name] : nlohmann::ordered_json();
  };
  return {.progress = progress_in(part(kProgress), from),
          .replica = {.model = std::move(checkpoint.model),
                      .state = std::move(checkpoint.state),
                      .step = step_state_in(part(kStepState), from)},
          .order = part(kOrder)};
}

}  // namespace gradring::train
