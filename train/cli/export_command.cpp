// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "data/datasets/open_dataset.h"
#include "kernels/runtime/file.h"
#include "kernels/runtime/nearest_name.h"
#include "nn/parameter/parameter.h"
#include "train/checkpoint/safetensors.h"
#include "train/checkpoint/tensor_file.h"
#include "train/cli/commands.h"
#include "train/options/usage_error.h"
#include "train/setup/run_settings.h"
#include "train/setup/start.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string checkpoint;
  std::string output;
  std::string tensor;
  bool ema = false;
};

CommandLine command_line(Options& options) {
  return {.command = "gradring export",
          .purpose = "weights of a checkpoint as a file for PyTorch or NumPy",
          .usage = {"gradring export --checkpoint PATH --output FILE.pt",
                    "gradring export --checkpoint PATH --output FILE.safetensors",
                    "gradring export --checkpoint PATH --tensor NAME --output FILE.npy"},
          .options = {text_option("checkpoint", "PATH",
                                  "checkpoint, run directory (its newest valid checkpoint), or file of tensors",
                                  options.checkpoint),
                      text_option("output", "FILE",
                                  "new file, in the format of its extension: .pt, .pth, .safetensors, .npy",
                                  options.output),
                      text_option("tensor", "NAME", "one tensor, also of the optimizer state (default all weights)",
                                  options.tensor),
                      switch_option("ema", "averaged weights of a training with --ema", options.ema)},
          .notes = "PyTorch: model.load_state_dict(torch.load(\"FILE.pt\"))"};
}

using Tensors = std::vector<TensorRecord>;

/// Writes a new file in some format.
using Writer = void (*)(FileSystem& files, const fs::path& path, const Tensors& tensors);

void write_as_pt(FileSystem& files, const fs::path& path, const Tensors& tensors) { write_pt(files, path, tensors); }

void write_as_safetensors(FileSystem& files, const fs::path& path, const Tensors& tensors) {
  write_safetensors(files, path, plan_safetensors(tensors, {{"format", "pt"}}));
}

void write_as_npy(FileSystem& files, const fs::path& path, const Tensors& tensors) {
  if (tensors.size() != 1)
    throw UsageError(
        fmt::format("a .npy file holds one tensor, and here are {}: name one by --tensor; gradring ckpt "
                    "inspect lists them",
                    tensors.size()));
  write_npy(files, path, tensors.front());
}

Writer writer_for(const fs::path& output) {
  const std::string extension = output.extension().string();
  if (extension == ".pt" || extension == ".pth") return write_as_pt;
  if (extension == ".safetensors") return write_as_safetensors;
  if (extension == ".npy") return write_as_npy;
  throw UsageError(fmt::format("--output is '{}': end it in .pt, .pth, .safetensors or .npy", output.string()));
}

/// Sorts the weights in PyTorch's order if the checkpoint names its model; safetensors files are sorted otherwise.
void sort_as_model(Checkpoint& checkpoint) {
  const std::string model = saved_setting(checkpoint, "model"), dataset = saved_setting(checkpoint, "dataset");
  if (model.empty() || std::ranges::find(data::dataset_names(), dataset) == data::dataset_names().end()) return;
  const data::KnownSet& set = data::known_set(dataset);
  const auto parameters = nn::parameters_of(nn::make_model(model, set.sample, std::ssize(set.classes)));
  const auto place = [&](const TensorRecord& tensor) {
    return std::pair(std::ranges::find(parameters, tensor.name, &nn::Parameter::name) - parameters.begin(),
                     tensor.name);
  };
  std::ranges::sort(checkpoint.model, {}, place);
}

/// The weights, or the named tensor of the checkpoint.
Tensors chosen(Checkpoint checkpoint, const std::string& name) {
  if (name.empty()) return std::move(checkpoint.model);
  std::vector<std::string_view> names;
  for (auto* list : {&checkpoint.model, &checkpoint.state})
    for (TensorRecord& tensor : *list) {
      if (tensor.name == name) return {std::move(tensor)};
      names.push_back(tensor.name);
    }
  throw UsageError("there is no tensor " + in_quotes(name) + "." + did_you_mean(name, names));
}

/// Writes to a temporary name and renames, so that `output` is never incomplete.
void write_whole(FileSystem& files, const fs::path& output, const Tensors& tensors, Writer write) {
  const fs::path aside = output.string() + ".partial";
  try {
    write(files, aside, tensors);
    files.rename(aside, output);
  } catch (...) {
    std::error_code ignored;
    fs::remove(aside, ignored);
    throw;
  }
}

int run(Arguments args) {
  Options options;
  if (!words_or_help(command_line(options), args)) return kOk;
  if (options.checkpoint.empty()) throw UsageError("--checkpoint is missing: give the path of what to export");
  if (options.output.empty()) throw UsageError("--output is missing: give the file to write, such as FILE.pt");
  const Writer write = writer_for(options.output);
  PosixFileSystem files;
  if (files.exists(options.output))
    throw UsageError(fmt::format("--output: {} already exists; name another file, or remove it", options.output));
  NamedTensors named = named_tensors(files, options.checkpoint, "--checkpoint");
  for (const std::string& remark : named.remarks) print_to_stderr(remark + "\n");
  if (options.ema) take_averaged(named);
  sort_as_model(named.contents);
  const Tensors tensors = chosen(std::move(named.contents), options.tensor);
  write_whole(files, options.output, tensors, write);
  fmt::print("{}: {} tensor{} of {}\n", options.output, tensors.size(), tensors.size() == 1 ? "" : "s",
             named.from.string());
  return kOk;
}

}  // namespace

const Command kExportCommand{.name = "export",
                             .help = "weights as a file for PyTorch or NumPy",
                             .run = run,
                             .describe = describe<Options, command_line>};

}  // namespace gradring::train
