// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/base/file.h"
#include "train/app/commands/commands.h"
#include "train/app/commands/trained_model.h"
#include "train/core/trainer/training_state.h"
#include "train/options/print_text.h"
#include "train/options/usage_error.h"
#include "train/records/checkpoint/inspect.h"

namespace gradring::train {
namespace {

/// The compared contents differ. Exit code 1, as diff's.
class DifferenceError : public Error {
 public:
  using Error::Error;
};

/// Reads a checkpoint or file.
NamedTensors read(FileSystem& files, const std::string& path) {
  NamedTensors named = named_tensors(files, path, "its path");
  for (const std::string& remark : named.remarks) print_to_stderr(remark + "\n");
  return named;
}

/// The tensor of that name, or all if it is empty.
std::vector<const TensorRecord*> chosen(const Checkpoint& checkpoint, const std::string& name) {
  if (!name.empty()) return {&tensor_named(checkpoint, name)};
  std::vector<const TensorRecord*> all;
  for (const auto* list : {&checkpoint.model, &checkpoint.state})
    for (const TensorRecord& tensor : *list) all.push_back(&tensor);
  return all;
}

struct DiffOptions {
  bool json = false, tensors_only = false;
};

CommandLine command_line(DiffOptions& options) {
  return {
      .command = "gradring ckpt diff",
      .purpose = "tensors in which two checkpoints or files differ, and by how much",
      .usage = {"gradring ckpt diff A B"},
      .options = {switch_option("tensors-only", "no comparison of steps, counters and settings", options.tensors_only),
                  json_switch(options.json)},
      .takes_words = true,
      .notes =
          "A and B are checkpoints, run directories (their newest valid checkpoint) or files: .safetensors, .pt, .npy. "
          "A file is compared with the weights alone. Training times are ignored. Exit code 0: equal; 1: different."};
}

using Json = nlohmann::ordered_json;

struct Differences {
  std::vector<DifferentTensor> tensors;
  std::vector<DifferentFact> facts;
  std::size_t compared = 0;  ///< tensors of A

  bool none() const { return tensors.empty() && facts.empty(); }
};

Differences compare(const NamedTensors& a, const NamedTensors& b, bool tensors_only) {
  Differences found{.tensors = different_tensors(a.contents.model, b.contents.model),
                    .facts = {},
                    .compared = a.contents.model.size()};
  if (a.is_file || b.is_file) return found;
  auto state = different_tensors(a.contents.state, b.contents.state);
  std::move(state.begin(), state.end(), std::back_inserter(found.tensors));
  found.compared += a.contents.state.size();
  if (!tensors_only) found.facts = different_facts(a.contents, b.contents);
  return found;
}

std::string text_of(const TensorInfo& tensor) {
  return fmt::format("{} {}", names_of(tensor.type).safetensors, shape_text(tensor.shape));
}

std::string text_of(const TensorDistance& distance) {
  if (distance.different == 0) return "equal values of other bits";
  std::string text =
      distance.different == 1 ? "1 element differs" : fmt::format("{} elements differ", distance.different);
  const bool any_finite = distance.different > distance.non_finite;
  if (distance.non_finite > 0)
    text += fmt::format(", {} of them NaN or infinite{}", any_finite ? std::to_string(distance.non_finite) : "all",
                        any_finite ? ", the others" : "");
  else
    text += ",";
  if (any_finite) text += fmt::format(" by {:.3g} at most, relatively {:.3g}", distance.absolute, distance.relative);
  if (distance.cosine) text += fmt::format("; cosine {:.9f}", *distance.cosine);
  return text;
}

std::string text_of(const DifferentTensor& tensor) {
  if (!tensor.b) return "only in A: " + text_of(*tensor.a);
  if (!tensor.a) return "only in B: " + text_of(*tensor.b);
  std::string text = text_of(*tensor.a);
  if (*tensor.a != *tensor.b) text += ", in B " + text_of(*tensor.b);
  if (tensor.distance) text += ": " + text_of(*tensor.distance);
  return text;
}

void print(const Differences& found, const NamedTensors& a, const NamedTensors& b) {
  print_text("A  {}\nB  {}\n", a.from.string(), b.from.string());
  for (const DifferentTensor& tensor : found.tensors) print_text("{}  {}\n", in_quotes(tensor.name), text_of(tensor));
  for (const DifferentFact& fact : found.facts)
    print_text("{}  {} in A, {} in B\n", fact.what, fact.a.empty() ? "nothing" : fact.a,
               fact.b.empty() ? "nothing" : fact.b);
  if (found.none()) print_text("equal: {} tensors\n", found.compared);
}

Json to_json(const std::optional<TensorInfo>& tensor) {
  if (!tensor) return Json();
  return {{"type", names_of(tensor->type).safetensors}, {"shape", tensor->shape}};
}

Json to_json(const Differences& found, const NamedTensors& a, const NamedTensors& b) {
  Json json = {{"a", a.from.string()}, {"b", b.from.string()}, {"equal", found.none()}};
  json["tensors"] = Json::array();
  for (const DifferentTensor& tensor : found.tensors) {
    Json entry = {{"name", tensor.name}, {"a", to_json(tensor.a)}, {"b", to_json(tensor.b)}};
    if (const auto& distance = tensor.distance) {
      const bool any_finite = distance->different == 0 || distance->different > distance->non_finite;
      entry["different"] = distance->different;
      entry["non_finite"] = distance->non_finite;
      entry["max_abs"] = any_finite ? Json(distance->absolute) : Json();
      entry["max_rel"] = any_finite ? Json(distance->relative) : Json();
      entry["cosine"] = distance->cosine ? Json(*distance->cosine) : Json();
    }
    json["tensors"].push_back(std::move(entry));
  }
  json["meta"] = Json::array();
  for (const DifferentFact& fact : found.facts)
    json["meta"].push_back({{"what", fact.what}, {"a", fact.a}, {"b", fact.b}});
  return json;
}

void run(const DiffOptions& options, const Words& words) {
  if (words.size() != 2) throw UsageError("expected two paths to compare: gradring ckpt diff A B");
  PosixFileSystem files;
  const NamedTensors a = read(files, words[0]), b = read(files, words[1]);
  const Differences found = compare(a, b, options.tensors_only);
  if (options.json)
    print_json(to_json(found, a, b));
  else
    print(found, a, b);
  if (!found.none())
    throw DifferenceError(fmt::format("{} and {} differ in {} tensors and {} settings or counters", a.from.string(),
                                      b.from.string(), found.tensors.size(), found.facts.size()));
}

struct InspectOptions {
  std::string tensor;
  bool json = false;
};

CommandLine command_line(InspectOptions& options) {
  return {
      .command = "gradring ckpt inspect",
      .purpose = "tensors of a checkpoint or file: shapes, types, statistics",
      .usage = {"gradring ckpt inspect PATH"},
      .options = {text_option("tensor", "NAME", "one tensor (default all)", options.tensor), json_switch(options.json)},
      .takes_words = true,
      .notes =
          "PATH is a checkpoint, a run directory (its newest valid checkpoint) or a file: .safetensors, .pt, .npy."};
}

/// Prints the kernels of the layers if the checkpoint names them.
void print_plans(const Json& plans) {
  for (const auto& plan : plans) {
    if (!plan.is_object() || !plan.contains("layers") || !plan.contains("by")) continue;
    const auto& layers = plan["layers"];
    print_text("{} by {}\n", layers.empty() ? "the loss" : layers.dump(), plan["by"].dump());
  }
}

void print_about(const NamedTensors& named) {
  print_text("{}\n", named.from.string());
  if (named.is_file) return;
  const Checkpoint& checkpoint = named.contents;
  print_text("step {}{}{}\n", checkpoint.step, checkpoint.score ? fmt::format(", score {:.6f}", *checkpoint.score) : "",
             checkpoint.about->contains("made_by") ? ", by " + (*checkpoint.about)["made_by"].dump() : "");
  print_plans(checkpoint.about->value(kPlans, Json::array()));
}

void print(const std::vector<const TensorRecord*>& tensors) {
  std::size_t width = 4;
  for (const TensorRecord* tensor : tensors) width = std::max(width, in_quotes(tensor->name).size() - 2);
  print_text("\n{:<{}}  {:<18} {:<6} {:>12} {:>12} {:>12} {:>12} {:>10}\n", "name", width, "shape", "type", "min",
             "max", "mean", "deviation", "non-finite");
  for (const TensorRecord* tensor : tensors) {
    const std::string name = in_quotes(tensor->name);
    print_text("{:<{}}  {:<18} {:<6}", std::string_view(name).substr(1, name.size() - 2), width,
               shape_text(tensor->shape), names_of(tensor->type).safetensors);
    const auto found = statistics_of(*tensor);
    if (found && found->elements > found->non_finite)
      print_text(" {:>12.5g} {:>12.5g} {:>12.5g} {:>12.5g} {:>10}", found->least, found->most, found->mean,
                 found->deviation, found->non_finite);
    else if (found && found->elements > 0)
      print_text(" {0:>12} {0:>12} {0:>12} {0:>12} {1:>10}", "-", found->non_finite);
    print_text("\n");
  }
}

Json to_json(const TensorRecord& tensor) {
  Json json = {{"name", tensor.name},
               {"shape", tensor.shape},
               {"type", names_of(tensor.type).safetensors},
               {"bytes", tensor.bytes.size()}};
  if (const auto found = statistics_of(tensor); found && found->elements > 0) {
    const auto of_finite = [&](double value) { return found->elements > found->non_finite ? Json(value) : Json(); };
    json["min"] = of_finite(found->least);
    json["max"] = of_finite(found->most);
    json["mean"] = of_finite(found->mean);
    json["deviation"] = of_finite(found->deviation);
    json["non_finite"] = found->non_finite;
  }
  return json;
}

Json to_json(const NamedTensors& named, const std::vector<const TensorRecord*>& tensors) {
  Json json = {{"path", named.from.string()}};
  if (!named.is_file) {
    json["step"] = named.contents.step;
    json["score"] = named.contents.score ? Json(*named.contents.score) : Json();
    json["about"] = *named.contents.about;
  }
  json["tensors"] = Json::array();
  for (const TensorRecord* tensor : tensors) json["tensors"].push_back(to_json(*tensor));
  return json;
}

void run(const InspectOptions& options, const Words& words) {
  PosixFileSystem files;
  const NamedTensors named = read(files, only_word(words, "gradring ckpt inspect PATH"));
  const auto tensors = chosen(named.contents, options.tensor);
  if (options.json) {
    print_json(to_json(named, tensors));
    return;
  }
  print_about(named);
  print(tensors);
}

}  // namespace

const Command kCkptDiff = make_command<DiffOptions>("diff", "differences between two checkpoints or files");
const Command kCkptInspect = make_command<InspectOptions>("inspect", "tensors of a checkpoint or file");

}  // namespace gradring::train
