// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

#include "data/datasets/dataset.h"
#include "data/datasets/open_dataset.h"
#include "train/cli/commands.h"
#include "train/cli/inference_setting.h"
#include "train/options/usage_error.h"
#include "train/trainer/from_config.h"
#include "train/trainer/training_state.h"

namespace gradring::train {
namespace {

struct EvalOptions {
  InferenceOptions inference;
};

CommandLine command_line(EvalOptions& all) {
  InferenceOptions& options = all.inference;
  CommandLine line{
      .command = "gradring eval",
      .purpose = "accuracy and loss of a checkpoint on a test set",
      .usage = {"gradring eval RUN [OPTIONS]", "gradring eval FILE --dataset mnist --data-dir DIR [OPTIONS]"},
      .options = inference_options(options),
      .takes_words = true,
      .notes = "RUN is a run directory or a checkpoint of one, FILE a file of weights."};
  line.options.insert(
      line.options.begin() + 2,
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
  fmt::print("{} on {}'s test set, {} by {} in {}\n", source_text(setting.tensors), setting.config.dataset,
             setting.compute.device->id().to_string(), setting.compute.backend->name(),
             precision_name(setting.precision()));
  fmt::print("Accuracy  {}/{} ({:.2f} %)\nLoss      {:.6f}\n", result.correct, result.samples, 100 * result.accuracy,
             result.loss);
}

void run(EvalOptions& all, Words words) {
  constexpr const char* kUsageLine = "gradring eval RUN";
  InferenceOptions& options = all.inference;
  take_path(options.checkpoint, words, kUsageLine);
  if (!words.empty()) throw UsageError(fmt::format("unexpected argument '{}': {}", words.front(), kUsageLine));
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

}  // namespace

const Command kEvalCommand = make_command<EvalOptions>("eval", "accuracy and loss of a checkpoint on a test set");

}  // namespace gradring::train
