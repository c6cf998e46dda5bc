// SPDX-License-Identifier: Apache-2.0
#include "train/cli/eval_command.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "train/cli/inference_options.h"
#include "train/cli/print_json.h"
#include "train/cli/run_command.h"
#include "train/inference/inference.h"
#include "train/launch/exit_code.h"
#include "train/precision/precision.h"
#include "train/trainer/sample_shape.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring eval: how a checkpoint does on a test set, each sample once\n\n"
    "  gradring eval --checkpoint PATH [--dataset mnist --data-dir DIR] [options]\n\n"
    "Options; in brackets the default:\n";

CommandLine command_line(InferenceOptions& options) {
  CommandLine line{.command = "gradring eval", .options = inference_options(options)};
  line.options.insert(
      line.options.begin() + 1,
      {option_of_training("dataset", "on what [what the checkpoint was trained on]", options.given),
       option_of_training("data-dir", "folder of the data set's files [GRADRING_DATA_DIR, or the checkpoint's]",
                          options.given)});
  return line;
}

nlohmann::ordered_json to_json(const InferenceSetting& setting, const Evaluation& result, kernels::DType precision) {
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
  json["precision"] = precision_name(precision);
  return json;
}

void print(const InferenceSetting& setting, const Evaluation& result, kernels::DType precision) {
  fmt::print("{} on {}'s test set, {} by {} in {}\n", setting.tensors.from.string(), setting.config.dataset,
             setting.compute.device->id().to_string(), setting.compute.backend->name(), precision_name(precision));
  fmt::print("Accuracy  {}/{} ({:.2f} %)\nLoss      {:.6f}\n", result.correct, result.samples, 100 * result.accuracy,
             result.loss);
}

int run(std::span<const std::string> args) {
  InferenceOptions options;
  const CommandLine line = command_line(options);
  if (read_command_line(line, args).help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return kOk;
  }
  InferenceSetting setting = prepare_inference(options);
  const auto dataset = data::open_dataset(setting.config.dataset, data::Split::test, setting.config.data_dir);
  check_sample_shape(setting.tensors.contents.about, dataset->shape(), setting.tensors.from);
  const auto precision = precision_named(setting.config.precision, setting.compute.device->id());
  Inference inference({.model = setting.config.model,
                       .sample = dataset->shape(),
                       .classes = dataset->classes(),
                       .batch_size = setting.config.batch_size,
                       .precision = precision},
                      std::move(setting.tensors.contents.model), setting.tensors.from, setting.compute);
  const Inference::Result result = inference.run(*dataset);
  write_logits(options, result.evaluation.samples, result.logits);
  if (options.json)
    print_json(to_json(setting, result.evaluation, precision));
  else
    print(setting, result.evaluation, precision);
  return kOk;
}

}  // namespace

int eval_main(std::span<const std::string> args) {
  return run_command("gradring eval", [args] { return run(args); });
}

}  // namespace gradring::train
