// SPDX-License-Identifier: Apache-2.0
#include "train/app/commands/trained_model.h"

#include <fmt/format.h>

#include <utility>

#include "data/datasets/open_folder.h"
#include "kernels/base/file.h"
#include "kernels/base/nearest_name.h"
#include "train/core/config/option_sources.h"
#include "train/core/setup/run_settings.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/from_config.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/metrics/named_file.h"

namespace gradring::train {
namespace {

/// On the command line or in a variable.
std::optional<std::string> text_given(const OptionTexts& given, const std::string& option) {
  const auto found = given.find(option);
  return found != given.end() ? found->second : system_variable(variable_of(*find_option(option)));
}

bool is_set(const OptionTexts& given, const std::string& option) { return text_given(given, option).has_value(); }

/// Command line before GRADRING_* variables, the checkpoint's settings and the default.
TrainConfig resolve_config(OptionTexts given, const std::string& default_batch, const NamedTensors& tensors) {
  const bool takes_model = !is_set(given, "model"), takes_dataset = !is_set(given, "dataset");
  const auto take_saved = [&](const char* option) {
    if (const std::string saved = saved_setting(tensors.contents, option); !saved.empty()) given[option] = saved;
  };
  for (const char* option : {"dataset", "model", "model-text"})
    if (option == std::string_view("model-text") ? takes_model : !is_set(given, option)) take_saved(option);
  // GRADRING_DATA_DIR is the parent of the public datasets' folders: own data is not there.
  const bool is_own = takes_dataset && data::is_own_data(text_given(given, "dataset").value_or(""));
  if (is_own ? !given.contains("data-dir") : !is_set(given, "data-dir")) take_saved("data-dir");
  if (takes_dataset || text_given(given, "dataset") == data::kFolder)
    for (const char* option : kFolderOptions)
      if (!is_set(given, option)) take_saved(option);
  if (!is_set(given, "batch-size")) given["batch-size"] = default_batch;
  if (!is_set(given, "dataset"))
    throw UsageError(fmt::format("{} does not name its dataset: give it with --dataset", tensors.from.string()));
  const auto recorded = recorded_dataset(*tensors.contents.about, tensors.from);
  TrainConfig config = resolve(given, system_variables(), std::nullopt, takes_dataset ? recorded : std::nullopt).config;
  if (recorded && !is_set(given, "normalize")) {
    config.facts->mean = recorded->mean;
    config.facts->std = recorded->std;
  } else if (normalizes_by_data(config)) {
    config.facts = facts_of(config, *data::open_dataset(dataset_spec(config), data::Split::train));
  }
  return config;
}

Compute compute_for(const TrainConfig& config) {
  return make_compute({.device = config.device,
                       .simulate_gpu = config.simulate_gpu,
                       .simulate_seed = config.simulate_seed,
                       .backend = config.backend,
                       .conv = config.conv,
                       .gemm = config.gemm,
                       .threads = threads_of_rank(config.threads, {}, system_variable)});
}

}  // namespace

std::vector<Option> checkpoint_options(CheckpointChoice& choice) {
  return {text_option("checkpoint", "PATH",
                      "checkpoint, run directory (its newest valid checkpoint), or file of weights: .safetensors, .pt; "
                      "default: the first argument",
                      choice.path),
          switch_option("best", "the run's checkpoint with the highest accuracy instead of its newest", choice.best)};
}

void take_path(CheckpointChoice& choice, Words& words, std::string_view usage) {
  if (!choice.path.empty()) return;
  if (words.empty())
    throw UsageError(fmt::format(
        "the checkpoint is missing: give the path of a run directory, a checkpoint or a file of weights: {}", usage));
  choice.path = words.front();
  words.erase(words.begin());
}

NamedTensors read_choice(FileSystem& files, const CheckpointChoice& choice) {
  NamedTensors tensors = choice.best ? best_tensors(files, choice.path, "--checkpoint")
                                     : named_tensors(files, choice.path, "--checkpoint");
  for (const std::string& remark : tensors.remarks) print_to_stderr(remark + "\n");
  return tensors;
}

const TensorRecord& tensor_named(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<std::string_view> names;
  for (const auto* list : {&checkpoint.model, &checkpoint.state})
    for (const TensorRecord& tensor : *list) {
      if (tensor.name == name) return tensor;
      names.push_back(tensor.name);
    }
  throw UsageError("there is no tensor " + in_quotes(name) + "." + did_you_mean(name, names));
}

std::string source_text(const NamedTensors& tensors) {
  return tensors.from.string() + (tensors.which.empty() ? "" : " (" + tensors.which + ")");
}

kernels::DType InferenceSetting::precision() const { return dtype_of(config.precision, compute.device->id()); }

Option option_of_training(const std::string& name, const std::string& help, OptionTexts& given) {
  return {.name = name,
          .letter = 0,
          .value = find_option(name)->value,
          .help = help,
          .read = [name, &given](std::string_view text) { given[name] = std::string(text); }};
}

Option tta_option(OptionTexts& given) {
  return option_of_training("tta",
                            "test-time augmentation; flip: mean of the logits of an image and its mirror image; "
                            "airbench: also of those shifted by a pixel (default none)",
                            given);
}

std::vector<Option> inference_options(InferenceOptions& options) {
  const auto as_there = [&](const char* name, const char* help) {
    return option_of_training(name, help, options.given);
  };
  std::vector<Option> all = checkpoint_options(options.checkpoint);
  const std::vector<Option> more = {
      as_there("model", "model architecture (default as in the checkpoint, or convnet)"),
      as_there("normalize", "mean and standard deviation that normalize pixels (default as in the checkpoint)"),
      option_of_training("batch-size", fmt::format("samples per forward pass (default {})", options.default_batch),
                         options.given),
      as_there("precision", "compute type of the layers; auto: fp16 on a GPU, else fp32 (default auto)"),
      as_there("device", "compute device; auto: a GPU if there is one (default auto)"),
      as_there("simulate-gpu", "card that is simulated instead of using a GPU, with --device cuda (default none)"),
      as_there("simulate-seed",
               "seed of the order in which a simulated GPU does what CUDA leaves unordered (default 0)"),
      as_there("backend", "implementation of the layers (default auto)"),
      as_there("threads", "compute threads; 0: OMP_NUM_THREADS, or all usable processors (default 0)"),
      switch_option("ema", "averaged weights of a training with --ema", options.ema),
      text_option("logits", "FILE.npy", "file for the logits, one row per sample", options.logits),
      force_option(options.replace),
      json_switch(options.json)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

InferenceSetting prepare_inference(const InferenceOptions& options) {
  check_output({.option = "--logits", .path = options.logits}, options.replace);
  PosixFileSystem files;
  InferenceSetting setting{.config = {}, .tensors = read_choice(files, options.checkpoint), .compute = {}};
  if (options.ema) take_averaged(setting.tensors);
  setting.config = resolve_config(options.given, options.default_batch, setting.tensors);
  setting.compute = compute_for(setting.config);
  return setting;
}

std::unique_ptr<Inference> make_inference(InferenceSetting& setting, const kernels::Shape& sample, int classes,
                                          std::int64_t batch_size) {
  auto inference =
      std::make_unique<Inference>(InferenceSpec{.model = model_of(setting.config),
                                                .sample = sample,
                                                .classes = classes,
                                                .batch_size = batch_size,
                                                .precision = setting.precision(),
                                                .normalize = data::normalize_spec(*setting.config.facts)},
                                  std::move(setting.tensors.contents.model), setting.tensors.from, setting.compute);
  for (const std::string& remark : inference->remarks()) print_to_stderr(remark + "\n");
  return inference;
}

void write_logits(const InferenceOptions& options, std::int64_t samples, const std::vector<float>& logits) {
  if (options.logits.empty()) return;
  const TensorInfo info{.name = "logits", .shape = {samples, static_cast<std::int64_t>(logits.size()) / samples}};
  NamedFile file(options.logits);
  file.write(npy_head(info));
  file.write({reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(float)});
  file.finish();
}

}  // namespace gradring::train
