// SPDX-License-Identifier: Apache-2.0
// gradring export: weights, a graph or the state of the optimizer as a file for other programs.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/file.h"
#include "nn/models/model.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/trained_model.h"
#include "train/app/export/exported_model.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/run_directory.h"
#include "train/core/setup/run_settings.h"
#include "train/core/setup/start.h"
#include "train/core/trainer/parameter_names.h"
#include "train/core/trainer/parameter_tensors.h"
#include "train/core/trainer/torch_optimizer_state.h"
#include "train/core/trainer/training_state.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/error.h"
#include "train/records/checkpoint/safetensors.h"
#include "train/records/checkpoint/tensor_file.h"
#include "train/records/checkpoint/torch_optimizer.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct ExportOptions {
  CheckpointChoice checkpoint;
  std::string output;
  std::string tensor;
  std::string model, dataset;  ///< empty: as in the checkpoint
  std::string card;
  bool ema = false;
  bool optimizer = false;
};

constexpr const char* kExportUsage = "gradring export RUN --output FILE.onnx";

CommandLine command_line(ExportOptions& options) {
  const std::vector<Option> source = checkpoint_options(options.checkpoint);
  return {.command = "gradring export",
          .purpose = "a trained model as a file for ONNX, PyTorch or NumPy",
          .usage = {"gradring export RUN --output FILE.onnx [--card FILE.md]", "gradring export RUN --output FILE.pt",
                    "gradring export RUN --output FILE.safetensors", "gradring export RUN --optimizer --output FILE.pt",
                    "gradring export RUN --tensor NAME --output FILE.npy"},
          .options = {source[0], source[1],
                      text_option("output", "FILE",
                                  "new file, in the format of its extension: .onnx, .pt, .pth, .safetensors, .npy",
                                  options.output),
                      text_option("tensor", "NAME", "one tensor, also of the optimizer state (default all weights)",
                                  options.tensor),
                      switch_option("ema", "averaged weights of a training with --ema", options.ema),
                      switch_option("optimizer", "state_dict of PyTorch's optimizer instead of the weights (.pt)",
                                    options.optimizer),
                      text_option("model", "NAME|FILE.toml",
                                  "model architecture, or its file (default as in the checkpoint)", options.model),
                      text_option("dataset", "NAME",
                                  "dataset whose classes were trained (default as in the checkpoint)", options.dataset),
                      text_option("card", "FILE.md", "new file for a model card in Markdown", options.card)},
          .takes_words = true,
          .notes =
              "RUN is a run directory, a checkpoint of one, or a file of tensors. "
              "ONNX: onnxruntime takes images as uint8 [N, H, W, C]; the graph normalizes them. "
              "PyTorch: model.load_state_dict(torch.load(\"FILE.pt\"))"};
}

/// What is exported, and what is known of it.
struct Exported {
  NamedTensors named;
  std::vector<TensorRecord> tensors;
  std::optional<ModelFacts> facts;
};

/// Writes a new file in some format.
using Writer = void (*)(FileSystem& files, const fs::path& path, const Exported& exported);

/// For a format that needs them.
const ModelFacts& facts_in(const Exported& exported) {
  if (exported.facts) return *exported.facts;
  if (exported.named.is_file)
    throw UsageError(fmt::format("{} does not name its model and dataset: give --model and --dataset",
                                 exported.named.from.string()));
  throw CheckpointError(exported.named.from, "does not name a model and a dataset that this version has",
                        "give --model and --dataset");
}

std::string about(const Exported& exported) {
  return exported.facts ? to_json(*exported.facts, ModelInput::floats).dump(2) + "\n" : "";
}

void write_as_onnx(FileSystem& files, const fs::path& path, const Exported& exported) {
  const ModelFacts& facts = facts_in(exported);
  std::vector<TensorRecord> weights = exported.tensors;
  for (const std::string& remark : ParameterNames(facts.model).rename(weights, exported.named.from))
    print_to_stderr(remark + "\n");
  write_new_file(files, path, onnx_model(facts, weights, exported.named.from));
}

void write_as_pt(FileSystem& files, const fs::path& path, const Exported& exported) {
  write_pt(files, path, exported.tensors, about(exported));
}

void write_as_safetensors(FileSystem& files, const fs::path& path, const Exported& exported) {
  const auto texts =
      exported.facts ? to_texts(*exported.facts, ModelInput::floats) : std::map<std::string, std::string>();
  write_safetensors(files, path, plan_safetensors(exported.tensors, texts));
}

void write_as_npy(FileSystem& files, const fs::path& path, const Exported& exported) {
  if (exported.tensors.size() != 1)
    throw UsageError(fmt::format(
        "a .npy file holds one tensor, but {} are selected: name one with --tensor; gradring ckpt inspect lists them",
        exported.tensors.size()));
  write_npy(files, path, exported.tensors.front());
}

/// The optimizer of a checkpoint, with the learning rate of the next step, as PyTorch saves it.
///
/// Errors    UsageError if `named` is a file, which holds no optimizer; CheckpointError if the settings are unknown or
///           contradict the tensors.
TorchOptimizer saved_optimizer(const NamedTensors& named, const nn::Model& model) {
  if (named.is_file)
    throw UsageError(fmt::format("{} holds no optimizer: name a checkpoint or a run directory", named.from.string()));
  const TrainConfig config = saved_config(named.contents, named.from);
  const TrainingState state = from_checkpoint(named.contents, named.from);
  const std::int32_t applied = state.replica.step.applied_steps;
  const std::vector<nn::Parameter> parameters = nn::parameters_of(model);
  ParameterGroups groups;
  std::vector<double> rates;
  try {
    groups = parameter_groups(parameters, config.optimizer);
    const RateSchedule schedule = saved_schedule(named.contents, config);
    for (const ParameterGroup& group : groups.groups) rates.push_back(schedule.at(group, applied));
  } catch (const InvalidArgument& error) {
    throw CheckpointError(named.from, fmt::format("has an invalid schedule or parameter group: {}", error.what()),
                          "use another checkpoint");
  }
  return to_torch_optimizer({.state = state.replica.state, .applied_steps = applied}, groups, rates, parameters,
                            named.from);
}

void write_optimizer(FileSystem& files, const fs::path& path, const Exported& exported) {
  write_torch_optimizer(files, path, saved_optimizer(exported.named, facts_in(exported).model), about(exported));
}

bool is_pt(const fs::path& output) { return output.extension() == ".pt" || output.extension() == ".pth"; }

Writer writer_for(const ExportOptions& options) {
  const fs::path output = options.output;
  const std::string extension = output.extension().string();
  if (options.optimizer && (!is_pt(output) || !options.tensor.empty() || options.ema))
    throw UsageError("--optimizer writes a .pt or .pth file, without --tensor and --ema");
  if (options.optimizer) return write_optimizer;
  if (is_pt(output)) return write_as_pt;
  if (extension == ".onnx" && !options.tensor.empty())
    throw UsageError("--tensor selects one tensor, but a .onnx file holds the whole model: leave it out");
  if (extension == ".onnx") return write_as_onnx;
  if (extension == ".safetensors") return write_as_safetensors;
  if (extension == ".npy") return write_as_npy;
  throw UsageError(fmt::format("--output is '{}': end it in .onnx, .pt, .pth, .safetensors or .npy", output.string()));
}

/// Sorts the weights in PyTorch's order if the model is known; safetensors files are sorted otherwise.
void sort_as_model(Checkpoint& checkpoint, const nn::Model& model) {
  const auto tensors = nn::tensors_of(model);
  const auto position = [&](const TensorRecord& tensor) {
    return std::pair(std::ranges::find(tensors, tensor.name, &nn::Parameter::name) - tensors.begin(), tensor.name);
  };
  std::ranges::sort(checkpoint.model, {}, position);
}

/// The events of the run that saved a checkpoint; nothing if they are not beside it.
std::optional<RunHistory> history_beside(FileSystem& files, const NamedTensors& named) {
  if (named.is_file) return std::nullopt;
  const fs::path metrics = metrics_of(fs::absolute(named.from).lexically_normal().parent_path().parent_path());
  if (!files.exists(metrics)) return std::nullopt;
  return read_history(metrics);
}

std::string sha256_of(FileSystem& files, const fs::path& path) {
  const auto file = files.open(path);
  return sha256_hex(bytes_of(read_text(*file, path, 0, file->size())));
}

void write_card(FileSystem& files, const ExportOptions& options, const Exported& exported) {
  const std::string card = model_card({.facts = facts_in(exported),
                                       .named = exported.named,
                                       .averaged = options.ema,
                                       .history = history_beside(files, exported.named),
                                       .file = options.output,
                                       .file_sha256 = sha256_of(files, options.output)});
  write_whole(files, options.card, [&](const fs::path& path) { write_new_file(files, path, card); });
  print_text("{}: model card\n", options.card);
}

void check_is_new(FileSystem& files, const char* option, const std::string& path) {
  if (!path.empty() && files.exists(path))
    throw UsageError(fmt::format("{}: {} already exists; name another file, or remove it", option, path));
}

Exported read_exported(FileSystem& files, const ExportOptions& options) {
  Exported exported{.named = read_choice(files, options.checkpoint), .tensors = {}, .facts = {}};
  if (options.ema) take_averaged(exported.named);
  exported.facts = find_facts(exported.named, options.model, options.dataset);
  if (exported.facts) sort_as_model(exported.named.contents, exported.facts->model);
  const Checkpoint& contents = exported.named.contents;
  exported.tensors = options.tensor.empty() ? contents.model : std::vector{tensor_named(contents, options.tensor)};
  return exported;
}

void run(ExportOptions& options, Words words) {
  take_path(options.checkpoint, words, kExportUsage);
  if (!words.empty()) throw UsageError(fmt::format("unexpected argument '{}': {}", words.front(), kExportUsage));
  if (options.output.empty()) throw UsageError("--output is missing: give the file to write, such as FILE.onnx");
  const Writer write = writer_for(options);
  PosixFileSystem files;
  check_is_new(files, "--output", options.output);
  check_is_new(files, "--card", options.card);
  if (options.card == options.output)
    throw UsageError(fmt::format("--card and --output are both {}: name two files", options.output));
  const Exported exported = read_exported(files, options);
  if (const std::string found = non_finite_weights(exported.tensors); !found.empty())
    print_to_stderr(fmt::format("{}: {}\n", exported.named.from.string(), found));
  if (!options.card.empty()) facts_in(exported);
  write_whole(files, options.output, [&](const fs::path& path) { write(files, path, exported); });
  if (options.optimizer)
    print_text("{}: optimizer state of {}\n", options.output, source_text(exported.named));
  else
    print_text("{}: {} tensor{} of {}\n", options.output, exported.tensors.size(),
               exported.tensors.size() == 1 ? "" : "s", source_text(exported.named));
  if (!options.card.empty()) write_card(files, options, exported);
}

}  // namespace

const Command kExportCommand =
    make_command<ExportOptions>("export", "a trained model as a file for ONNX, PyTorch or NumPy");

}  // namespace gradring::train
