// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/datasets/open_dataset.h"
#include "data/images/image.h"
#include "kernels/runtime/file.h"
#include "train/checkpoint/tensor_file.h"
#include "train/cli/commands.h"
#include "train/config/option_sources.h"
#include "train/config/resolve.h"
#include "train/inference/inference.h"
#include "train/options/usage_error.h"
#include "train/setup/compute.h"
#include "train/setup/run_settings.h"
#include "train/setup/start.h"
#include "train/trainer/from_config.h"
#include "train/trainer/training_state.h"

namespace gradring::train {
namespace {

/// Options that eval and predict share.
struct InferenceOptions {
  std::string checkpoint;
  OptionTexts given;   ///< options that training has too
  std::string logits;  ///< a .npy file to write; empty: none
  bool ema = false;    ///< averaged weights
  bool json = false;
};

/// A checkpoint and the device to run it on.
struct InferenceSetting {
  TrainConfig config;  ///< dataset and model as in the checkpoint, unless given
  NamedTensors tensors;
  Compute compute;

  kernels::DType precision() const { return precision_named(config.precision, compute.device->id()); }
};

constexpr const char* kBatchSize = "250";  // larger than in training: no gradients are kept

bool is_set(const OptionTexts& given, const std::string& option) {
  return given.contains(option) || system_variable(variable_of(*find_option(option)));
}

/// Command line before GRADRING_* variables, the checkpoint's settings and the default.
TrainConfig resolve_config(OptionTexts given, const NamedTensors& tensors) {
  for (const char* option : {"dataset", "data-dir", "model"})
    if (const std::string saved = saved_setting(tensors.contents, option); !saved.empty() && !is_set(given, option))
      given[option] = saved;
  if (!is_set(given, "batch-size")) given["batch-size"] = kBatchSize;
  if (!is_set(given, "dataset"))
    throw UsageError(fmt::format("{} does not name its dataset: give it with --dataset", tensors.from.string()));
  return resolve(given, system_variables(), std::nullopt).config;
}

Compute compute_for(const TrainConfig& config) {
  return make_compute({.device = config.device,
                       .backend = config.backend,
                       .conv = config.conv,
                       .gemm = config.gemm,
                       .threads = threads_of_rank(config.threads, {}, system_variable)});
}

Option option_of_training(const std::string& name, const std::string& help, OptionTexts& given) {
  return {.name = name,
          .letter = 0,
          .value = find_option(name)->value,
          .help = help,
          .read = [name, &given](std::string_view text) { given[name] = std::string(text); }};
}

std::vector<Option> inference_options(InferenceOptions& options) {
  const auto as_there = [&](const char* name, const char* help) {
    return option_of_training(name, help, options.given);
  };
  return {text_option("checkpoint", "PATH",
                      "checkpoint, run directory (its newest valid checkpoint), or file: .safetensors, .pt",
                      options.checkpoint),
          as_there("model", "model architecture (default as in the checkpoint, or convnet)"),
          as_there("batch-size", "samples per forward pass (default 250)"),
          as_there("precision", "compute type of the layers; auto: fp16 on a GPU, else fp32 (default auto)"),
          as_there("device", "compute device; auto: a GPU if there is one (default auto)"),
          as_there("backend", "implementation of the layers (default auto)"),
          as_there("threads", "compute threads; 0: OMP_NUM_THREADS, or all cores (default 0)"),
          switch_option("ema", "averaged weights of a training with --ema", options.ema),
          text_option("logits", "FILE.npy", "file for the logits, one row per sample", options.logits),
          json_switch(options.json)};
}

InferenceSetting prepare_inference(const InferenceOptions& options) {
  if (options.checkpoint.empty())
    throw UsageError("--checkpoint is missing: give the path of a checkpoint, a run directory or a file of weights");
  PosixFileSystem files;
  InferenceSetting setting{
      .config = {}, .tensors = named_tensors(files, options.checkpoint, "--checkpoint"), .compute = {}};
  for (const std::string& remark : setting.tensors.remarks) print_to_stderr(remark + "\n");
  if (options.ema) take_averaged(setting.tensors);
  setting.config = resolve_config(options.given, setting.tensors);
  setting.compute = compute_for(setting.config);
  return setting;
}

/// Takes the weights out of `setting`.
///
/// Errors    as check_sample_shape and Inference.
Inference make_inference(InferenceSetting& setting, const kernels::Shape& sample, int classes,
                         std::int64_t batch_size) {
  return Inference({.model = setting.config.model,
                    .sample = sample,
                    .classes = classes,
                    .batch_size = batch_size,
                    .precision = setting.precision()},
                   std::move(setting.tensors.contents.model), setting.tensors.from, setting.compute);
}

void write_logits(const InferenceOptions& options, std::int64_t samples, const std::vector<float>& logits) {
  if (options.logits.empty()) return;
  const auto bytes = std::as_bytes(std::span(logits));
  TensorRecord record;
  record.name = "logits";
  record.shape = {samples, static_cast<std::int64_t>(logits.size()) / samples};
  record.bytes.assign(bytes.begin(), bytes.end());
  PosixFileSystem files;
  write_npy(files, options.logits, record);
}

CommandLine command_line(InferenceOptions& options) {
  CommandLine line{.command = "gradring eval",
                   .purpose = "accuracy and loss of a checkpoint on a test set",
                   .usage = {"gradring eval --checkpoint PATH [--dataset mnist --data-dir DIR] [OPTIONS]"},
                   .options = inference_options(options)};
  line.options.insert(
      line.options.begin() + 1,
      {option_of_training("dataset", "dataset (default as in the checkpoint)", options.given),
       option_of_training("data-dir",
                          "folder with the files of the dataset (default GRADRING_DATA_DIR, or as in the checkpoint)",
                          options.given)});
  return line;
}

nlohmann::ordered_json to_json(const InferenceSetting& setting, const Evaluation& result) {
  nlohmann::ordered_json json = {{"checkpoint", setting.tensors.from.string()}};
  if (!setting.tensors.is_file) json["step"] = setting.tensors.contents.step;
  json["dataset"] = setting.config.dataset;
  json["split"] = "test";
  json["samples"] = result.samples;
  json["correct"] = result.correct;
  json["accuracy"] = result.accuracy;
  json["loss"] = result.loss;
  json["device"] = setting.compute.device->id().to_string();
  json["backend"] = setting.compute.backend->name();
  json["precision"] = precision_name(setting.precision());
  return json;
}

void print(const InferenceSetting& setting, const Evaluation& result) {
  fmt::print("{} on {}'s test set, {} by {} in {}\n", setting.tensors.from.string(), setting.config.dataset,
             setting.compute.device->id().to_string(), setting.compute.backend->name(),
             precision_name(setting.precision()));
  fmt::print("Accuracy  {}/{} ({:.2f} %)\nLoss      {:.6f}\n", result.correct, result.samples, 100 * result.accuracy,
             result.loss);
}

void run(InferenceOptions& options) {
  InferenceSetting setting = prepare_inference(options);
  const auto dataset = data::open_dataset(setting.config.dataset, data::Split::test, setting.config.data_dir);
  check_sample_shape(*setting.tensors.contents.about, dataset->shape(), setting.tensors.from);
  const Inference::Result result =
      make_inference(setting, dataset->shape(), dataset->classes(), setting.config.batch_size).run(*dataset);
  write_logits(options, result.evaluation.samples, result.logits);
  if (options.json)
    print_json(to_json(setting, result.evaluation));
  else
    print(setting, result.evaluation);
}

struct PredictOptions {
  InferenceOptions inference;
  std::int64_t top = 3;
  bool invert = false;
};

CommandLine command_line(PredictOptions& options) {
  options.inference.given["data-dir"] = ".";  // required with most datasets; no file of it is read
  CommandLine line{
      .command = "gradring predict",
      .purpose = "classes that a checkpoint recognizes in image files",
      .usage = {"gradring predict --checkpoint PATH [OPTIONS] IMAGE.png ..."},
      .options = inference_options(options.inference),
      .takes_words = true,
      .notes = "Each image is scaled to the size and channels of the training samples; proportions are not kept."};
  line.options.insert(
      line.options.begin() + 1,
      {option_of_training("dataset", "dataset whose classes were trained (default as in the checkpoint)",
                          options.inference.given),
       count_option("top", "most likely classes to show per image (default 3)", 1, options.top),
       switch_option("invert", "swap of light and dark, for dark digits on a light background", options.invert)});
  return line;
}

/// The images as a dataset whose labels are all 0.
data::InMemoryDataset read_images(const std::vector<std::string>& names, const data::KnownSet& set, bool invert) {
  data::InMemoryDataset::Contents contents{.name = "images",
                                           .shape = set.sample,
                                           .classes = static_cast<int>(set.classes.size()),
                                           .pixels = {},
                                           .labels = {}};
  for (const std::string& name : names) {
    const auto pixels = data::to_sample(data::read_png(name), set.sample, invert);
    if (!invert && set.sample[2] == 1 && data::has_light_border(pixels, set.sample))
      print_to_stderr(
          fmt::format("{} has a light border, but {} is light on dark: it may need --invert\n", name, set.name));
    contents.pixels.insert(contents.pixels.end(), pixels.begin(), pixels.end());
    contents.labels.push_back(0);
  }
  return data::InMemoryDataset(std::move(contents));
}

/// A class and its probability.
struct Guess {
  std::size_t index = 0;
  std::string_view name;
  double probability = 0;
};

/// The most likely first; among equals, the first class.
std::vector<Guess> guesses(std::span<const float> logits, const data::KnownSet& set, std::int64_t top) {
  const std::vector<double> probabilities = probabilities_of(logits);
  std::vector<Guess> all;
  for (std::size_t i = 0; i < probabilities.size(); ++i) all.push_back({i, set.classes[i], probabilities[i]});
  std::ranges::sort(all, {}, [](const Guess& guess) { return std::pair(-guess.probability, guess.index); });
  all.resize(std::min(all.size(), static_cast<std::size_t>(top)));
  return all;
}

void print(const std::string& image, const std::vector<Guess>& best) {
  std::string rest;
  for (std::size_t i = 1; i < best.size(); ++i)
    rest += fmt::format("   {} {:.2f} %", best[i].name, 100 * best[i].probability);
  fmt::print("{}: {} ({:.2f} %){}\n", image, best.front().name, 100 * best.front().probability, rest);
}

nlohmann::ordered_json to_json(const std::string& image, const std::vector<Guess>& best) {
  nlohmann::ordered_json json = {{"image", image}, {"class", best.front().name}, {"index", best.front().index}};
  for (const Guess& guess : best)
    json["probabilities"].push_back(
        {{"class", guess.name}, {"index", guess.index}, {"probability", guess.probability}});
  return json;
}

void run(PredictOptions& options, const Words& words) {
  if (words.empty()) throw UsageError("name at least one image: gradring predict --checkpoint PATH IMAGE.png");
  data::require_png();
  InferenceSetting setting = prepare_inference(options.inference);
  const data::KnownSet& set = data::known_set(setting.config.dataset);
  check_sample_shape(*setting.tensors.contents.about, set.sample, setting.tensors.from);
  const data::InMemoryDataset images = read_images(words, set, options.invert);
  const std::int64_t batch_size = std::min(setting.config.batch_size, images.size());
  const std::vector<float> logits =
      make_inference(setting, set.sample, images.classes(), batch_size).run(images).logits;
  write_logits(options.inference, images.size(), logits);
  nlohmann::ordered_json results = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto best = guesses(std::span(logits).subspan(i * set.classes.size(), set.classes.size()), set, options.top);
    options.inference.json ? results.push_back(to_json(words[i], best)) : print(words[i], best);
  }
  if (options.inference.json) print_json(results);
}

}  // namespace

const Command kEvalCommand = make_command<InferenceOptions>("eval", "accuracy and loss of a checkpoint on a test set");
const Command kPredictCommand =
    make_command<PredictOptions>("predict", "classes that a checkpoint recognizes in images");

}  // namespace gradring::train
