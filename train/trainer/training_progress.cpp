// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/training_progress.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/checkpoint/error.h"
#include "train/checkpoint/tensor_record.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;
using kernels::step_state::StepState;

/// Takes the numbers of an object by name.
class Reader {
 public:
  Reader(const Json& json, const std::filesystem::path& path) : json_(json), path_(path) {}

  template <class Number>
  void operator()(const char* name, Number& number) const {
    const auto found = json_.is_object() ? json_.find(name) : json_.end();
    if (found == json_.end() || !fits<Number>(*found))
      throw CheckpointError(path_, "has no sound " + in_quotes(name), "take another checkpoint");
    number = found->get<Number>();
  }

 private:
  template <class Number>
  static bool fits(const Json& value) {
    if constexpr (std::is_floating_point_v<Number>)
      return value.is_number() && std::isfinite(value.get<Number>());
    else
      return value.is_number_integer() && value >= 0 && value <= std::numeric_limits<Number>::max();
  }

  const Json& json_;
  const std::filesystem::path& path_;
};

struct Writer {
  Json& json;

  template <class Number>
  void operator()(const char* name, const Number& number) const {
    json[name] = number;
  }
};

/// Every field with its name, for both directions.
template <class Progress, class Visit>
void visit_progress(Progress& progress, const Visit& visit) {
  visit("steps", progress.steps);
  visit("epoch", progress.epoch);
  visit("position", progress.position);
  visit("samples", progress.samples);
  visit("epoch_loss_sum", progress.epoch_loss_sum);
  visit("epoch_samples", progress.epoch_samples);
  visit("seconds", progress.seconds);
}

/// What the next step reads; the rest belongs to the step before.
template <class State, class Visit>
void visit_state(State& state, const Visit& visit) {
  visit("applied_steps", state.applied_steps);
  visit("skipped_steps", state.skipped_steps);
  visit("loss_scale", state.loss_scale);
  visit("growth_tracker", state.growth_tracker);
}

}  // namespace

Json to_json(const TrainingProgress& progress) {
  Json json;
  visit_progress(progress, Writer{json});
  return json;
}

Json to_json(const StepState& state) {
  Json json;
  visit_state(state, Writer{json});
  return json;
}

TrainingProgress progress_in(const Json& json, const std::filesystem::path& path) {
  TrainingProgress progress;
  visit_progress(progress, Reader(json, path));
  return progress;
}

StepState step_state_in(const Json& json, const std::filesystem::path& path) {
  StepState state;
  visit_state(state, Reader(json, path));
  return state;
}

}  // namespace gradring::train
