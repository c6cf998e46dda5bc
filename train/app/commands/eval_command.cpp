// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "data/datasets/dataset.h"
#include "data/datasets/open_dataset.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/trained_model.h"
#include "train/core/setup/datasets.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/nan_policy.h"
#include "train/core/trainer/training_state.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/metrics/run_events.h"

namespace gradring::train {
namespace {

/// What is evaluated, with the names of metrics.jsonl.
constexpr std::string_view kSplits[] = {kTestSplit, kValidationSplit};

struct EvalOptions {
  InferenceOptions inference;
  std::string split{};
};

/// A data set and what the training found on it.
struct Evaluated {
  std::string_view split;
  std::unique_ptr<data::Dataset> dataset{};
  /// Accuracy when the checkpoint was saved, which ranks it; empty if it is of other samples.
  std::optional<double> recorded{};
};

CommandLine command_line(EvalOptions& all) {
  InferenceOptions& options = all.inference;
  CommandLine line{
      .command = "gradring eval",
      .purpose = "accuracy and loss of a checkpoint on a test set, or on the validation set of its training",
      .usage = {"gradring eval RUN [OPTIONS]", "gradring eval FILE --dataset mnist --data-dir DIR [OPTIONS]"},
      .options = inference_options(options),
      .takes_words = true,
      .notes =
          "RUN is a run directory or a checkpoint of one, FILE a file of weights. The validation set is the part of "
          "the training set that the run held out (--val-split): with --best, the accuracy by which that checkpoint "
          "was selected. It is recorded with the checkpoint, and printed beside the result."};
  line.options.insert(
      line.options.begin() + 2,
      {choice_option("split", kSplits,
                     "samples to evaluate (default test, or validation where there are no test files)", all.split),
       option_of_training("dataset", "dataset (default as in the checkpoint)", options.given),
       option_of_training("data-dir",
                          "folder with the files of the dataset (default as in the checkpoint; for public datasets "
                          "GRADRING_DATA_DIR, if set)",
                          options.given),
       option_of_training("broken",
                          "response to images of a folder that cannot be read; fail: an error that names them; skip: "
                          "left out (default as in the checkpoint)",
                          options.given),
       tta_option(options.given)});
  return line;
}

HeldOut held_out_of(const NamedTensors& tensors) {
  if (tensors.is_file)
    throw UsageError(
        fmt::format("--split validation: {} is a file of weights, which does not say which samples were "
                    "held out: name a run directory or a checkpoint",
                    tensors.from.string()));
  const auto held_out = held_out_samples(tensors.contents, tensors.from);
  if (held_out) return *held_out;
  throw UsageError(
      fmt::format("--split validation: {} was trained without --val-split, so it has no validation set: "
                  "leave out --split",
                  tensors.from.string()));
}

Evaluated open_evaluated(const EvalOptions& options, const InferenceSetting& setting) {
  const NamedTensors& tensors = setting.tensors;
  const auto held_out = tensors.is_file ? std::nullopt : held_out_samples(tensors.contents, tensors.from);
  Evaluated evaluated{.split = options.split.empty() ? final_split(setting.config, held_out)
                                                     : std::string_view(options.split)};
  const bool validates = evaluated.split == kValidationSplit;
  evaluated.dataset = validates ? open_validation_set(setting.config, held_out_of(tensors))
                                : data::open_dataset(dataset_spec(setting.config), data::Split::test);
  const bool selects = validates || (!tensors.is_file && !held_out);
  const DataHashes here = {{kTestData, data::to_hex(data::content_hash(*evaluated.dataset))}};
  const bool is_same = validates || !differ(recorded_hashes(*tensors.contents.about, tensors.from), here, kTestData);
  if (selects && is_same && !options.inference.ema) evaluated.recorded = tensors.contents.score;
  return evaluated;
}

nlohmann::ordered_json to_json(const InferenceSetting& setting, const Evaluated& evaluated, const Evaluation& result) {
  nlohmann::ordered_json json = {{"checkpoint", setting.tensors.from.string()}};
  if (!setting.tensors.is_file) json["step"] = setting.tensors.contents.step;
  json["dataset"] = setting.config.dataset;
  json["split"] = evaluated.split;
  json["samples"] = result.samples;
  json["correct"] = result.correct;
  json["accuracy"] = result.accuracy;
  json["loss"] = result.loss;
  if (setting.config.tta != Tta::none) json["tta"] = word_of(setting.config.tta);
  if (const auto top5 = top5_accuracy(result)) json["top5_accuracy"] = *top5;
  json["classes"] = to_json(class_results(result.classes, evaluated.dataset->class_names()));
  if (evaluated.recorded) json["recorded_accuracy"] = *evaluated.recorded;
  json["device"] = shown_device(setting.compute);
  json["backend"] = setting.compute.backend->name();
  json["precision"] = precision_name(setting.precision());
  return json;
}

void print(const InferenceSetting& setting, const Evaluated& evaluated, const Evaluation& result) {
  print_text("{} on {}'s {} set, {} by {} in {}\n", source_text(setting.tensors), setting.config.dataset,
             evaluated.split, shown_device(setting.compute), setting.compute.backend->name(),
             precision_name(setting.precision()));
  const auto share = [&](std::int64_t correct) {
    return fmt::format("{}/{} ({:.2f} %)", correct, result.samples,
                       100 * static_cast<double>(correct) / static_cast<double>(result.samples));
  };
  const bool has_tta = setting.config.tta != Tta::none;
  print_text("Accuracy  {}{}\n", share(result.correct),
             has_tta ? fmt::format(", test-time augmentation {}", word_of(setting.config.tta)) : "");
  if (result.correct_in_top) print_text("Top-5     {}\n", share(*result.correct_in_top));
  print_text("Loss      {:.6f}\n", result.loss);
  if (evaluated.recorded) print_text("Recorded  {:.2f} % in the training\n", 100 * *evaluated.recorded);
}

void run(EvalOptions& all, Words words) {
  constexpr const char* kUsageLine = "gradring eval RUN";
  InferenceOptions& options = all.inference;
  take_path(options.checkpoint, words, kUsageLine);
  if (!words.empty()) throw UsageError(fmt::format("unexpected argument '{}': {}", words.front(), kUsageLine));
  InferenceSetting setting = prepare_inference(options);
  const Evaluated evaluated = open_evaluated(all, setting);
  const data::Dataset& dataset = *evaluated.dataset;
  check_sample_shape(*setting.tensors.contents.about, dataset.shape(), setting.tensors.from);
  check_classes(*setting.config.facts, dataset.class_names(), dataset.name(), setting.tensors.from);
  const Inference::Result result =
      make_inference(setting, dataset.shape(), dataset.classes(), setting.config.batch_size)
          ->run(dataset, setting.config.tta);
  if (!std::isfinite(result.evaluation.loss))
    throw DivergedError(
        fmt::format("{}: the loss on the {} set is infinite, since the outputs are too large; use other "
                    "weights",
                    setting.tensors.from.string(), evaluated.split));
  write_logits(options, result.evaluation.samples, result.logits);
  if (options.json)
    print_json(to_json(setting, evaluated, result.evaluation));
  else
    print(setting, evaluated, result.evaluation);
}

}  // namespace

const Command kEvalCommand = make_command<EvalOptions>("eval", "accuracy and loss of a checkpoint");

}  // namespace gradring::train
