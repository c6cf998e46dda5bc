// SPDX-License-Identifier: Apache-2.0
#include "train/cli/export_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "data/datasets/known_set.h"
#include "data/datasets/open_dataset.h"
#include "kernels/runtime/nearest_name.h"
#include "kernels/runtime/write_all.h"
#include "nn/parameter/parameter.h"
#include "train/checkpoint/npy.h"
#include "train/checkpoint/pt.h"
#include "train/checkpoint/safetensors.h"
#include "train/cli/bench_options.h"
#include "train/cli/inference_options.h"
#include "train/cli/run_command.h"
#include "train/config/usage_error.h"
#include "train/launch/exit_code.h"
#include "train/setup/averaged_tensors.h"
#include "train/setup/named_checkpoint.h"
#include "train/setup/saved_settings.h"

namespace gradring::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead =
    "gradring export: a checkpoint's weights as a file for other programs\n\n"
    "  gradring export --checkpoint PATH --output F.pt             PyTorch: load_state_dict(torch.load(\"F.pt\"))\n"
    "  gradring export --checkpoint PATH --output F.safetensors\n"
    "  gradring export --checkpoint PATH --tensor NAME --output F.npy\n\n"
    "Options:\n";

struct Options {
  std::string checkpoint;
  std::string output;
  std::string tensor;
  bool ema = false;
};

CommandLine command_line(Options& options) {
  return {.command = "gradring export",
          .options = {text_option("checkpoint", "PATH",
                                  "a checkpoint, a run directory (its newest sound one), or a file of tensors",
                                  options.checkpoint),
                      text_option("output", "F", "a new file; its name says the format: .pt, .pth, .safetensors, .npy",
                                  options.output),
                      text_option("tensor", "NAME", "this tensor alone; of the optimizer's, too", options.tensor),
                      ema_switch(options.ema)},
          .takes_words = false};
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

/// PyTorch's order, where the checkpoint says what model it is of; safetensors files have one of their own.
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

/// The weights, or the one tensor of the whole checkpoint that was named.
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

/// Aside, then renamed: there is never half a file of that name.
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

int run(std::span<const std::string> args) {
  Options options;
  const CommandLine line = command_line(options);
  if (read_command_line(line, args).help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return kOk;
  }
  if (options.checkpoint.empty()) throw UsageError("name what to export: --checkpoint PATH");
  if (options.output.empty()) throw UsageError("name the file to write: --output F.pt");
  const Writer write = writer_for(options.output);
  PosixFileSystem files;
  if (files.exists(options.output))
    throw UsageError(fmt::format("--output: {} is there already: name another, or remove it", options.output));
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

int export_main(std::span<const std::string> args) {
  return run_command("gradring export", [args] { return run(args); });
}

}  // namespace gradring::train
