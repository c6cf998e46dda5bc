// SPDX-License-Identifier: Apache-2.0
#include "train/cli/inference_options.h"

#include <fmt/format.h>

#include "kernels/runtime/write_all.h"
#include "train/checkpoint/npy.h"
#include "train/cli/bench_options.h"
#include "train/config/usage_error.h"
#include "train/config/variables.h"
#include "train/setup/averaged_tensors.h"
#include "train/setup/processors.h"
#include "train/setup/saved_settings.h"

namespace gradring::train {
namespace {

constexpr const char* kBatchSize = "250";  // no gradients are kept, so that it can be larger than training's

bool is_set(const OptionTexts& given, const std::string& option) {
  return given.contains(option) || system_variable(variable_of(*find_option(option)));
}

/// Command line, then GRADRING_* variables, then what the checkpoint says, then the default.
TrainConfig settle(OptionTexts given, const NamedTensors& tensors) {
  for (const char* option : {"dataset", "data-dir", "model"})
    if (const std::string saved = saved_setting(tensors.contents, option); !saved.empty() && !is_set(given, option))
      given[option] = saved;
  if (!is_set(given, "batch-size")) given["batch-size"] = kBatchSize;
  if (!is_set(given, "dataset"))
    throw UsageError(
        fmt::format("{} does not say on what it was trained: name the data set by --dataset", tensors.from.string()));
  return resolve(given, system_variables(), std::nullopt).config;
}

Compute compute_for(const TrainConfig& config) {
  return make_compute({.device = config.device,
                       .backend = config.backend,
                       .conv = config.conv,
                       .gemm = config.gemm,
                       .threads = threads_of_rank(config.threads, {}, system_variable)});
}

}  // namespace

CommandOption option_of_training(const std::string& name, const std::string& help, OptionTexts& given) {
  return {.name = name, .value = find_option(name)->value, .help = help, .read = [name, &given](std::string_view text) {
            given[name] = std::string(text);
          }};
}

CommandOption ema_switch(bool& on) {
  return {.name = "ema",
          .letter = 0,
          .value = {},
          .help = "the averaged weights of a training with --ema",
          .read = set_switch("ema", on)};
}

std::vector<CommandOption> inference_options(InferenceOptions& options) {
  const auto as_there = [&](const char* name, const char* help) {
    return option_of_training(name, help, options.given);
  };
  return {text_option("checkpoint", "PATH",
                      "a checkpoint, a run directory (its newest sound one), or a file: .safetensors, .pt",
                      options.checkpoint),
          as_there("model", "what was trained [what the checkpoint says, or convnet]"),
          as_there("batch-size", "samples at once [250]"),
          as_there("precision", "what layers compute in; auto: fp16 on a GPU, else fp32 [auto]"),
          as_there("device", "where to compute; auto: a GPU if there is one [auto]"),
          as_there("backend", "who computes the layers [auto]"),
          as_there("threads", "threads that compute; 0: OMP_NUM_THREADS, or all cores [0]"),
          ema_switch(options.ema),
          text_option("logits", "F.npy", "write the logits there, a row a sample", options.logits),
          json_switch(options.json)};
}

InferenceSetting prepare_inference(const InferenceOptions& options) {
  if (options.checkpoint.empty()) throw UsageError("name what was trained: --checkpoint PATH");
  PosixFileSystem files;
  InferenceSetting setting{
      .config = {}, .tensors = named_tensors(files, options.checkpoint, "--checkpoint"), .compute = {}};
  for (const std::string& remark : setting.tensors.remarks) print_to_stderr(remark + "\n");
  if (options.ema) take_averaged(setting.tensors);
  setting.config = settle(options.given, setting.tensors);
  setting.compute = compute_for(setting.config);
  return setting;
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

}  // namespace gradring::train
