// SPDX-License-Identifier: Apache-2.0
#include "train/app/export/exported_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/datasets/known_datasets.h"
#include "data/datasets/open_folder.h"
#include "data/loader/normalize.h"
#include "kernels/base/nearest_name.h"
#include "train/core/config/resolve.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/training_state.h"
#include "train/options/usage_error.h"

namespace gradring::train {
namespace {

bool is_among(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

void check_given(const char* option, const std::string& name, std::span<const std::string_view> names) {
  if (name.empty() || is_among(names, name)) return;
  throw UsageError(fmt::format("--{} is '{}', which does not exist.{}", option, name, did_you_mean(name, names)));
}

/// The model that `given` names, or else that of the checkpoint's settings. Without a text it is a built-in one.
nn::ModelText model_in(const Checkpoint& checkpoint, const std::string& given) {
  if (given.empty()) return {saved_setting(checkpoint, "model"), saved_setting(checkpoint, "model-text")};
  return named_model(given);
}

/// The data set that `given` names, or else that of the checkpoint. Nothing if it is unknown.
std::optional<data::DatasetFacts> dataset_of(const NamedTensors& named, const std::string& given) {
  if (given.empty())
    if (auto recorded = recorded_dataset(*named.contents.about, named.from)) return recorded;
  const auto* known = data::find_known_dataset(given.empty() ? saved_setting(named.contents, "dataset") : given);
  return known ? std::optional(*known) : std::nullopt;
}

/// How the images of a folder became the samples of `set`.
std::optional<data::ImageSettings> images_of(const NamedTensors& named, const data::DatasetFacts& set) {
  if (set.name != data::kFolder) return std::nullopt;
  return dataset_spec(saved_config(named.contents, named.from)).images;
}

}  // namespace

std::optional<ModelFacts> find_facts(const NamedTensors& named, const std::string& model, const std::string& dataset) {
  check_given("dataset", dataset, data::known_dataset_names());
  const nn::ModelText its_model = model_in(named.contents, model);
  const auto set = dataset_of(named, dataset);
  if ((its_model.text.empty() && !is_among(nn::model_names(), its_model.name)) || !set) return std::nullopt;
  check_sample_shape(*named.contents.about, set->shape, named.from);
  ModelFacts facts{.model = nn::make_model(its_model, set->shape, set->classes()),
                   .dataset = set->name,
                   .labels = set->class_names,
                   .mean = data::for_channels(set->mean, set->shape[2]),
                   .std = data::for_channels(set->std, set->shape[2]),
                   .images = images_of(named, *set),
                   .step = std::nullopt};
  if (!named.is_file) facts.step = named.contents.step;
  return facts;
}

nlohmann::ordered_json to_json(const ModelFacts& facts, ModelInput input) {
  const kernels::Shape& sample = facts.model.sample;
  const bool raw = input == ModelInput::bytes;
  nlohmann::ordered_json json = {
      {"made_by", "gradring " GRADRING_VERSION}, {"model", facts.model.name}, {"dataset", facts.dataset}};
  if (facts.step) json["step"] = *facts.step;
  json["input_shape"] =
      raw ? std::vector{sample[0], sample[1], sample[2]} : std::vector{sample[2], sample[0], sample[1]};
  json["input_layout"] = raw ? "NHWC" : "NCHW";
  json["input_type"] = raw ? "uint8" : "float32";
  const std::string before = facts.images ? "resize, center_crop" : "";
  json["preprocessing"] = raw ? (before.empty() ? "none" : before) + ": the graph computes (pixels / 255 - mean) / std"
                              : before + (before.empty() ? "" : ", ") + "(pixels / 255 - mean) / std";
  if (facts.images) {
    json["resize"] = facts.images->resize;
    json["interpolation"] = data::kInterpolation;
    json["center_crop"] = {facts.images->size, facts.images->size};
    json["color"] = "RGB";
  }
  json["mean"] = facts.mean;
  json["std"] = facts.std;
  json["labels"] = facts.labels;
  return json;
}

std::map<std::string, std::string> to_texts(const ModelFacts& facts, ModelInput input) {
  std::map<std::string, std::string> texts;
  const nlohmann::ordered_json json = to_json(facts, input);
  for (const auto& [name, value] : json.items())
    texts[name] = value.is_string() ? value.get<std::string>() : value.dump();
  return texts;
}

}  // namespace gradring::train
