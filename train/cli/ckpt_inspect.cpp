// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kernels/runtime/nearest_name.h"
#include "kernels/runtime/write_all.h"
#include "train/checkpoint/tensor_statistics.h"
#include "train/cli/bench_options.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"
#include "train/config/usage_error.h"
#include "train/setup/named_checkpoint.h"
#include "train/trainer/checkpoint_contents.h"

namespace gradring::train {
namespace {

constexpr const char* kHead =
    "gradring ckpt inspect: the tensors of a checkpoint or file, and what their numbers are like\n\n"
    "  gradring ckpt inspect PATH                        a checkpoint, a run directory (its newest sound one),\n"
    "                                                    or a file: .safetensors, .pt, .npy\n\n"
    "Options:\n";

using Tensors = std::vector<const TensorRecord*>;

Tensors chosen(const Checkpoint& checkpoint, const std::string& name) {
  Tensors all;
  std::vector<std::string_view> names;
  for (const auto* list : {&checkpoint.model, &checkpoint.state})
    for (const TensorRecord& tensor : *list) {
      names.push_back(tensor.name);
      if (name.empty() || tensor.name == name) all.push_back(&tensor);
    }
  if (all.empty() && !name.empty())
    throw UsageError("there is no tensor " + in_quotes(name) + "." + did_you_mean(name, names));
  return all;
}

/// What computed the layers, where the checkpoint says so.
void print_plans(const nlohmann::ordered_json& plans) {
  for (const auto& plan : plans) {
    if (!plan.is_object() || !plan.contains("layers") || !plan.contains("by")) continue;
    const auto& layers = plan["layers"];
    fmt::print("{} by {}\n", layers.empty() ? "the loss" : layers.dump(), plan["by"].dump());
  }
}

void print_about(const NamedTensors& named) {
  fmt::print("{}\n", named.from.string());
  if (named.is_file) return;
  const Checkpoint& checkpoint = named.contents;
  fmt::print("step {}{}{}\n", checkpoint.step, checkpoint.score ? fmt::format(", score {:.6f}", *checkpoint.score) : "",
             checkpoint.about.contains("made_by") ? ", by " + checkpoint.about["made_by"].dump() : "");
  print_plans(checkpoint.about.value(kPlans, nlohmann::ordered_json::array()));
}

void print(const Tensors& tensors) {
  std::size_t width = 4;
  for (const TensorRecord* tensor : tensors) width = std::max(width, in_quotes(tensor->name).size() - 2);
  fmt::print("\n{:<{}}  {:<18} {:<6} {:>12} {:>12} {:>12} {:>12} {:>10}\n", "name", width, "shape", "type", "min",
             "max", "mean", "deviation", "non-finite");
  for (const TensorRecord* tensor : tensors) {
    const std::string name = in_quotes(tensor->name);
    fmt::print("{:<{}}  {:<18} {:<6}", std::string_view(name).substr(1, name.size() - 2), width,
               shape_text(tensor->shape), names_of(tensor->type).safetensors);
    if (const auto found = statistics_of(*tensor); found && found->elements > 0)
      fmt::print(" {:>12.5g} {:>12.5g} {:>12.5g} {:>12.5g} {:>10}", found->least, found->most, found->mean,
                 found->deviation, found->non_finite);
    fmt::print("\n");
  }
}

nlohmann::ordered_json to_json(const TensorRecord& tensor) {
  nlohmann::ordered_json json = {{"name", tensor.name},
                                 {"shape", tensor.shape},
                                 {"type", names_of(tensor.type).safetensors},
                                 {"bytes", tensor.bytes.size()}};
  if (const auto found = statistics_of(tensor); found && found->elements > 0) {
    json["min"] = found->least;
    json["max"] = found->most;
    json["mean"] = found->mean;
    json["deviation"] = found->deviation;
    json["non_finite"] = found->non_finite;
  }
  return json;
}

nlohmann::ordered_json to_json(const NamedTensors& named, const Tensors& tensors) {
  nlohmann::ordered_json json = {{"path", named.from.string()}};
  if (!named.is_file) {
    json["step"] = named.contents.step;
    json["score"] = named.contents.score ? nlohmann::ordered_json(*named.contents.score) : nlohmann::ordered_json();
    json["about"] = named.contents.about;
  }
  json["tensors"] = nlohmann::ordered_json::array();
  for (const TensorRecord* tensor : tensors) json["tensors"].push_back(to_json(*tensor));
  return json;
}

}  // namespace

void ckpt_inspect(std::span<const std::string> args) {
  bool json = false;
  std::string tensor;
  const CommandLine line{.command = "gradring ckpt inspect",
                         .options = {text_option("tensor", "NAME", "this one alone", tensor), json_switch(json)},
                         .takes_words = true};
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  PosixFileSystem files;
  const NamedTensors named = named_tensors(files, only_path(words, line, "PATH"), "its path");
  for (const std::string& remark : named.remarks) print_to_stderr(remark + "\n");
  const Tensors tensors = chosen(named.contents, tensor);
  if (json) {
    print_json(to_json(named, tensors));
    return;
  }
  print_about(named);
  print(tensors);
}

}  // namespace gradring::train
