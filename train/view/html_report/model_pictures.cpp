// SPDX-License-Identifier: Apache-2.0
#include "train/view/html_report/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "data/datasets/open_dataset.h"
#include "nn/models/model.h"
#include "train/core/config/option_sources.h"
#include "train/core/config/resolve.h"
#include "train/core/inference/inference.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/datasets.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/training_state.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/checkpoint_directory.h"
#include "train/records/checkpoint/file_system.h"
#include "train/view/page/picture.h"

namespace gradring::train {
namespace {

constexpr std::size_t kWorst = 24;

/// The dataset and model of the checkpoint's training, on the default device.
TrainConfig config_of(const Checkpoint& checkpoint, const std::filesystem::path& from, const std::string& data_dir) {
  OptionTexts given = {{"batch-size", "250"}};
  for (const char* option : {"dataset", "model"}) {
    given[option] = saved_setting(checkpoint, option);
    if (given[option].empty())
      throw UsageError(fmt::format("{} does not name its {}, so its model cannot be evaluated", from.string(), option));
  }
  given["model-text"] = saved_setting(checkpoint, "model-text");
  for (const char* option : kFolderOptions)
    if (const std::string saved = saved_setting(checkpoint, option); !saved.empty()) given[option] = saved;
  const bool is_set = !data_dir.empty() ||
                      (!data::is_own_data(given["dataset"]) && system_variable(variable_of(*find_option("data-dir"))));
  if (const std::string folder = is_set ? data_dir : saved_setting(checkpoint, "data-dir"); !folder.empty())
    given["data-dir"] = folder;
  return resolve(given, system_variables(), std::nullopt, recorded_dataset(*checkpoint.about, from)).config;
}

/// Empty if the model has no convolution of grey or coloured images.
FilterImages filters_of(const nn::Model& model, const std::vector<TensorRecord>& tensors) {
  for (const nn::NamedLayer& layer : model.layers) {
    const auto* convolution = std::get_if<nn::Conv2d>(&layer.layer);
    if (convolution == nullptr) continue;
    if (convolution->in_channels != 1 && convolution->in_channels != 3) return {};
    const auto tensor = std::ranges::find(tensors, layer.name + ".weight", &TensorRecord::name);
    const auto weights = tensor == tensors.end() ? std::nullopt : values_of(*tensor);
    if (!weights) return {};
    const auto size = static_cast<std::uint32_t>(convolution->kernel);
    const auto channels = static_cast<std::uint32_t>(convolution->in_channels);
    auto [largest, images] = page::shaded_filters(*weights, channels, std::size_t{size} * size);
    return {.layer = layer.name, .size = size, .channels = channels, .largest = largest, .images = std::move(images)};
  }
  return {};
}

void add_predictions(const data::Dataset& dataset, std::span<const float> logits, ModelPictures& pictures) {
  const auto classes = static_cast<std::size_t>(dataset.classes());
  pictures.confusion.assign(classes, std::vector<std::int64_t>(classes));
  for (std::int64_t i = 0; i < dataset.size(); ++i) {
    const auto row = logits.subspan(static_cast<std::size_t>(i) * classes, classes);
    const auto predicted = static_cast<std::size_t>(std::ranges::max_element(row) - row.begin());
    const auto label = static_cast<std::size_t>(dataset.label(i));
    ++pictures.confusion[label][predicted];
    if (predicted == label) continue;
    const std::vector<double> probabilities = probabilities_of(row);
    pictures.worst.push_back({.index = i,
                              .label = static_cast<int>(label),
                              .predicted = static_cast<int>(predicted),
                              .probability = probabilities[predicted],
                              .label_probability = probabilities[label]});
  }
  std::ranges::stable_sort(pictures.worst, {}, &Misclassified::label_probability);
  if (pictures.worst.size() > kWorst) pictures.worst.resize(kWorst);
  for (Misclassified& each : pictures.worst) {
    const auto pixels = dataset.pixels(each.index);
    each.pixels.assign(pixels.begin(), pixels.end());
  }
}

}  // namespace

ModelPictures make_pictures(const std::filesystem::path& run_dir, const std::string& data_dir) {
  PosixFileSystem files;
  std::vector<std::string> remarks;
  std::optional<ResumePoint> found = best_checkpoint(files, checkpoints_of(run_dir));
  const bool is_best = found.has_value();
  ResumePoint named = is_best ? *std::move(found) : named_checkpoint(files, run_dir, "the run", remarks);
  const TrainConfig config = config_of(named.checkpoint, named.from, data_dir);
  const std::optional<HeldOut> held_out = held_out_samples(named.checkpoint, named.from);
  const std::string_view split = final_split(config, held_out);
  const auto dataset = split == kTestSplit ? data::open_dataset(dataset_spec(config), data::Split::test)
                                           : open_validation_set(config, *held_out);
  check_sample_shape(*named.checkpoint.about, dataset->shape(), named.from);
  check_classes(*config.facts, dataset->class_names(), dataset->name(), named.from);
  const nn::Model model = nn::make_model(model_of(config), dataset->shape(), dataset->classes());
  ParameterNames(model).rename(named.checkpoint.model, named.from);
  ModelPictures pictures{.checkpoint = named.from,
                         .step = named.checkpoint.step,
                         .is_best = is_best,
                         .dataset = config.dataset,
                         .split = split,
                         .classes = config.facts->class_names,
                         .samples = dataset->size(),
                         .sample = dataset->shape(),
                         .filters = filters_of(model, named.checkpoint.model)};
  const Compute compute = make_compute({.device = config.device,
                                        .simulate_gpu = config.simulate_gpu,
                                        .simulate_seed = config.simulate_seed,
                                        .backend = config.backend,
                                        .threads = threads_of_rank(config.threads, {}, system_variable)});
  Inference inference({.model = model_of(config),
                       .sample = dataset->shape(),
                       .classes = dataset->classes(),
                       .batch_size = std::min(config.batch_size, dataset->size()),
                       .precision = dtype_of(config.precision, compute.device->id()),
                       .normalize = data::normalize_spec(*config.facts)},
                      std::move(named.checkpoint.model), named.from, compute);
  const Inference::Result result = inference.run(*dataset);
  pictures.accuracy = result.evaluation.accuracy;
  add_predictions(*dataset, result.logits, pictures);
  return pictures;
}

}  // namespace gradring::train
