// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gradring/weights.h>

#include <filesystem>
#include <utility>

#include "kernels/runtime/cpu_level.h"
#include "train/app/api/api_call.h"
#include "train/app/api/arguments.h"
#include "train/core/inference/inference.h"
#include "train/core/setup/compute.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/dataset_record.h"
#include "train/core/trainer/from_config.h"
#include "train/core/trainer/training_state.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/file_system.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/tensor_file.h"

namespace gradring::train::api {
namespace {

constexpr const char* kArgument = "the argument weights";

Inference::Result judge(const std::string& weights, const Model& model, const Dataset& dataset, Options options) {
  const auto samples = copy_of(dataset);
  if (!options.values().contains("batch-size")) options.set("batch-size", 250);  // no gradients are kept
  const TrainConfig config = config_of(options, model, *samples);
  PosixFileSystem files;
  NamedTensors tensors = named_tensors(files, weights, kArgument);
  check_sample_shape(*tensors.contents.about, samples->shape(), tensors.from);
  const auto recorded = recorded_dataset(*tensors.contents.about, tensors.from);
  const unsigned threads = threads_of_rank(config.threads, {}, system_variable);
  const Compute compute = make_compute(compute_spec(config, threads, 0));
  Inference inference({.model = model_of(config),
                       .sample = samples->shape(),
                       .classes = samples->classes(),
                       .batch_size = config.batch_size,
                       .precision = dtype_of(config.precision, compute.device->id()),
                       .normalize = data::normalize_spec(recorded ? *recorded : facts_of(config, *samples))},
                      std::move(tensors.contents.model), tensors.from, compute);
  return inference.run(*samples);
}

void write_weights(const std::filesystem::path& from, const std::filesystem::path& file) {
  PosixFileSystem files;
  const std::string extension = file.extension().string();
  const bool is_pt = extension == ".pt" || extension == ".pth";
  if (!is_pt && extension != ".safetensors")
    throw UsageError(fmt::format("the file of weights is '{}': end it in .safetensors, .pt or .pth", file.string()));
  if (files.exists(file))
    throw UsageError(fmt::format("{} already exists; name another file, or remove it", file.string()));
  const NamedTensors tensors = named_tensors(files, from, kArgument);
  write_whole(files, file, [&](const std::filesystem::path& path) {
    if (is_pt)
      write_pt(files, path, tensors.contents.model, "");
    else
      write_safetensors(files, path, plan_safetensors(tensors.contents.model, {}));
  });
}

}  // namespace
}  // namespace gradring::train::api

namespace gradring {
inline namespace v1 {

Evaluation evaluate(const std::string& weights, const Model& model, const Dataset& dataset, const Options& options) {
  Evaluation evaluation;
  train::api::run_api_call([&] {
    kernels::cpu_level();
    auto [found, logits] = train::api::judge(weights, model, dataset, options);
    evaluation = {.samples = found.samples,
                  .correct = found.correct,
                  .accuracy = found.accuracy,
                  .loss = found.loss,
                  .logits = std::move(logits)};
  });
  return evaluation;
}

void save_weights(const std::string& from, const std::string& file) {
  train::api::run_api_call([&] { train::api::write_weights(from, file); });
}

}  // namespace v1
}  // namespace gradring
