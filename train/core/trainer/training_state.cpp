// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/training_state.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/core/trainer/computation.h"
#include "train/core/trainer/dataset_record.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/json_members.h"

namespace gradring::train {
namespace {

constexpr const char* kStepState = "step_state";
constexpr const char* kOrder = "order";
constexpr const char* kValidation = "validation";
constexpr const char* kStratified = "stratified";
constexpr const char* kPrecision = "precision";
constexpr const char* kSettings = "settings";
constexpr std::int64_t kMostSamples = std::int64_t{1} << 53;
constexpr int kHashDigits = 16;  // in messages

/// Checks values that earlier versions did not save, where they are there.
///
/// Errors    CheckpointError with `file`.
void check_types(const nlohmann::ordered_json& about, const std::filesystem::path& file) {
  const JsonMembers members(about, file);
  if (about.contains(kSamplesOfStep)) members.number<std::int64_t>(kSamplesOfStep, 1, kMostSamples);
  if (about.contains(kTotalSteps))
    members.number<std::int64_t>(kTotalSteps, 1, std::numeric_limits<std::int64_t>::max());
  for (const char* name : {kCpuLevel, kDevice, kPrecision, kSettings})
    if (about.contains(name)) members.text(name);
  if (!about.contains(kOrder)) return;
  const JsonMembers order(members.object(kOrder), file);
  order.text("dataset");
  order.number<std::int64_t>("samples", 0, kMostSamples);
  order.number<std::uint64_t>("seed", 0, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

nlohmann::ordered_json to_json(const kernels::Shape& shape) {
  const auto extents = shape.extents();
  return std::vector<std::int64_t>(extents.begin(), extents.end());
}

void check_sample_shape(const nlohmann::ordered_json& about, const kernels::Shape& here,
                        const std::filesystem::path& from) {
  const auto saved = about.find(kSampleShape);
  const nlohmann::ordered_json shape = to_json(here);
  if (saved == about.end() || *saved == shape) return;
  const std::string there = saved->dump().substr(0, 40);
  throw CheckpointError(from, "was trained on samples of " + there + ", but the samples here are of " + shape.dump(),
                        "use the data set that it was trained on (of image folders, with its --image-size), or another "
                        "checkpoint");
}

JsonValue order_of_samples(const TrainerWorld& world, const TrainConfig& config) {
  nlohmann::ordered_json order{
      {"dataset", world.train_set.name()}, {"samples", world.train_set.size()}, {"seed", config.seed}};
  if (world.validation_set) order[kValidation] = world.validation_set->size();
  if (world.validation_set && is_stratified(config)) order[kStratified] = true;
  if (config.sampler == Sampler::balanced) order["balanced"] = true;
  return order;
}

std::optional<HeldOut> held_out_samples(const Checkpoint& checkpoint, const std::filesystem::path& from) {
  const nlohmann::ordered_json& about = *checkpoint.about;
  const auto order = about.find(kOrder);
  if (order == about.end() || !order->is_object() || !order->contains(kValidation)) return std::nullopt;
  const JsonMembers members(*order, from);
  return HeldOut{.dataset = members.text("dataset"),
                 .samples = members.number<std::int64_t>(kValidation, 1, kMostSamples),
                 .train_samples = members.number<std::int64_t>("samples", 0, kMostSamples),
                 .seed = members.number<std::uint64_t>("seed", 0, std::numeric_limits<std::uint64_t>::max()),
                 .stratified = order->contains(kStratified),
                 .sha256 = recorded_hashes(about, from)[kTrainingData]};
}

void check_split(const JsonValue& saved, const JsonValue& here, const std::filesystem::path& from) {
  const auto part = [](const JsonValue& order, const char* name) {
    return order->is_object() ? order->value(name, nlohmann::ordered_json()) : nlohmann::ordered_json();
  };
  const auto before = part(saved, kValidation), now = part(here, kValidation);
  const bool same_samples = before.is_null() || (part(saved, "seed") == part(here, "seed") &&
                                                 part(saved, kStratified) == part(here, kStratified));
  if ((before == now && same_samples) || part(saved, "dataset") != part(here, "dataset")) return;
  const auto split_text = [&](const nlohmann::ordered_json& samples, const JsonValue& order) {
    return samples.is_null()
               ? std::string("no validation set")
               : fmt::format("{} validation samples{} by seed {}", samples.dump(),
                             part(order, kStratified).is_null() ? "" : " of all classes", part(order, "seed").dump());
  };
  throw UsageError(
      fmt::format("{} was trained with {}, but this run has {}: a training keeps its validation set; resume with the "
                  "--val-split, --stratify and --seed of that run, or start a new one from its weights with --weights",
                  from.string(), split_text(before, saved), split_text(now, here)));
}

bool OrderCheck::needs_same_samples() const {
  return progress.position > 0 || (saved->is_object() && saved->contains(kValidation));
}

std::string check_samples(const OrderCheck& check) {
  const bool trains_on_others = differ(check.saved_data, check.data, kTrainingData);
  const char* const name = trains_on_others ? kTrainingData : kTestData;
  if (!differ(check.saved_data, check.data, name)) return {};
  const std::string what = fmt::format(
      "was saved by a training with another {} set: the SHA-256 of its samples was {:.{}}, that of the samples here is "
      "{:.{}}",
      name, check.saved_data.at(name), kHashDigits, check.data.at(name), kHashDigits);
  if (!trains_on_others || !check.needs_same_samples()) return fmt::format("{} {}", check.from.string(), what);
  const bool is_within_epoch = check.progress.position > 0;
  throw CheckpointError(
      check.from,
      fmt::format("{}; {}", what,
                  is_within_epoch
                      ? fmt::format("it was saved in epoch {}, after sample {}, and which samples follow is "
                                    "not known",
                                    check.progress.epoch + 1, check.progress.position)
                      : "samples that were trained on could be in the validation set"),
      fmt::format("resume with {}, or start a new run from its weights with --weights", kUseItsFiles));
}

void check_order(const OrderCheck& check) {
  const TrainingProgress& progress = check.progress;
  if (progress.position == 0) return;
  const std::string where = fmt::format("{} was saved in epoch {}, after sample {}", check.from.string(),
                                        progress.epoch + 1, progress.position);
  if (!(check.saved == check.here))
    throw UsageError(
        fmt::format("{}, in the sample order {}, but this run has {}: resume with the options of that run, or from a "
                    "checkpoint at the end of an epoch",
                    where, check.saved.text(), check.here.text()));
  if (!check.sampler.step_at(progress.position))
    throw UsageError(
        fmt::format("{}, expected a multiple of the {} samples of a step: change --global-batch, or --batch-size and "
                    "the number of ranks",
                    where, check.samples_of_step));
}

std::string recorded_cpu_level(const kernels::Device& device) {
  if (device.id().kind != kernels::DeviceKind::cpu) return {};
  std::string level(kernels::cpu_level_name(kernels::cpu_level()));
  for (const char* variable : nn::kOneDnnLimits)
    if (const char* limit = std::getenv(variable); limit && *limit) level += fmt::format(", {}={}", variable, limit);
  return level;
}

std::string advice_for_cpu_level(const std::string& wanted, const std::string& here) {
  if (here.starts_with(wanted + ", ")) return fmt::format("unset {}", fmt::join(nn::kOneDnnLimits, " and "));
  const auto levels = kernels::cpu_levels();
  const bool is_here =
      std::ranges::any_of(levels, [&](kernels::CpuLevel level) { return kernels::cpu_level_name(level) == wanted; });
  if (is_here) return fmt::format("set {}={}", kernels::kCpuLevelVariable, wanted);
  return fmt::format("use the build and the environment that ran {}", wanted);
}

std::string check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device, bool reproducible,
                            const std::filesystem::path& from) {
  const auto saved = about.find(kCpuLevel);
  const std::string here = recorded_cpu_level(device);
  if (saved == about.end() || !saved->is_string() || here.empty()) return {};
  const auto there = saved->get<std::string>();
  if (there.empty() || there == here) return {};
  const std::string text =
      fmt::format("checkpoint {} was saved with {} code; this run uses {}, which rounds differently; {}", from.string(),
                  there, here, advice_for_cpu_level(there, here));
  if (reproducible) throw UsageError(text + ", or resume without --reproducible");
  return text + " to round as before";
}

JsonValue plans_of(const nn::Program& program) {
  auto plans = nlohmann::ordered_json::array();
  for (const nn::PlanDescription& plan : program.description())
    plans.push_back({{"layers", plan.layers}, {"by", plan.by}});
  return plans;
}

std::map<std::string, std::string> plans_by_layer(const nlohmann::ordered_json& about) try {
  std::map<std::string, std::string> by_layer;
  for (const nlohmann::ordered_json& plan : about.at(kPlans))
    for (const nlohmann::ordered_json& layer : plan.at("layers"))
      by_layer[layer.get<std::string>()] = plan.at("by").get<std::string>();
  return by_layer;
} catch (const nlohmann::ordered_json::exception&) {
  return {};
}

Checkpoint to_checkpoint(TrainingState state, const std::string& settings, std::optional<double> score) {
  Checkpoint checkpoint{
      .step = state.progress.steps,
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
                                      {kDevice, std::move(state.device)},
                                      {kTotalSteps, state.total_steps},
                                      {kPrecision, state.precision},
                                      {kSettings, settings},
                                      {"settings_sha256", sha256_hex(std::as_bytes(std::span(settings)))}},
      .score = score};
  if (!state.data.empty()) (*checkpoint.about)[kDataHashes] = state.data;
  if (state.dataset) (*checkpoint.about)[kDataset] = to_json(*state.dataset);
  if (!state.computation->empty()) (*checkpoint.about)[kComputation] = std::move(*state.computation);
  return checkpoint;
}

TrainingState from_checkpoint(Checkpoint checkpoint, const std::filesystem::path& from) {
  const std::filesystem::path file = from / kMetaFile;
  const nlohmann::ordered_json& about = *checkpoint.about;
  const JsonMembers members(about, file);
  check_types(about, file);
  if (checkpoint.score && !(*checkpoint.score >= 0 && *checkpoint.score <= 1))
    throw CheckpointError(file, fmt::format("has 'score' = {}, expected an accuracy from 0 to 1", *checkpoint.score),
                          kUseAnotherCheckpoint);
  TrainingState state{.progress = progress_in(members.object(kProgress), file),
                      .replica = {.model = std::move(checkpoint.model),
                                  .state = std::move(checkpoint.state),
                                  .step = step_state_in(members.object(kStepState), file)},
                      .samples_of_step = about.value(kSamplesOfStep, std::int64_t{0}),
                      .order = about.value(kOrder, nlohmann::ordered_json()),
                      .total_steps = about.value(kTotalSteps, std::int64_t{0}),
                      .precision = about.value(kPrecision, std::string()),
                      .dataset = recorded_dataset(about, file),
                      .data = recorded_hashes(about, file)};
  const kernels::step_state::StepState& step = state.replica.step;
  if (state.progress.imported_steps == kUnknownSteps)
    state.progress.imported_steps =
        std::max<std::int64_t>(0, step.applied_steps + std::int64_t{step.skipped_steps} - state.progress.steps);
  check_consistent({.step = checkpoint.step,
                    .progress = state.progress,
                    .state = step,
                    .samples_of_step = state.samples_of_step,
                    .samples_of_epoch = state.order->is_null() ? 0 : state.order->at("samples").get<std::int64_t>()},
                   file);
  return state;
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
  for (const SavedCheckpoint& saved : world_.checkpoints->take_saved())
    world_.metrics.event(CheckpointRecord{.step = saved.step, .seconds = saved.seconds});
  if (stop_on_errors_ && world_.checkpoints->failures() >= 2)
    throw SaveError(
        "two checkpoints in a row could not be saved: free space on the disk, or continue without checkpoints with "
        "--on-save-error continue");
}

void CheckpointSaver::finish() {
  wait();
  if (!world_.checkpoints) return;
  world_.checkpoints->finish();
  report();
}

}  // namespace gradring::train
