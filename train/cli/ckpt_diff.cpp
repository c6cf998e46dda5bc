// SPDX-License-Identifier: Apache-2.0
#include "train/cli/ckpt_diff.h"

#include <fmt/format.h>

#include <cstdio>
#include <iterator>
#include <nlohmann/json.hpp>

#include "kernels/runtime/write_all.h"
#include "train/checkpoint/contents_difference.h"
#include "train/cli/ckpt_options.h"
#include "train/cli/print_json.h"
#include "train/config/usage_error.h"
#include "train/setup/named_checkpoint.h"

namespace gradring::train {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kHead =
    "gradring ckpt diff: in which tensors A and B differ, and how far\n\n"
    "  gradring ckpt diff A B                            checkpoints, run directories (their newest sound one), or "
    "files:\n"
    "                                                    .safetensors, .pt, .npy; a file is compared with the weights "
    "alone\n\n"
    "The exit code is 0 if they are equal, 1 if they differ. How long a run took is no difference.\n\n"
    "Options:\n";

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

std::string text_of(const DifferentTensor& tensor) {
  if (!tensor.b) return "only in A: " + text_of(*tensor.a);
  if (!tensor.a) return "only in B: " + text_of(*tensor.b);
  std::string text = text_of(*tensor.a);
  if (*tensor.a != *tensor.b) text += ", in B " + text_of(*tensor.b);
  if (const auto& distance = tensor.distance)
    text += fmt::format(": {} elements differ, by {:.3g} at most, relatively {:.3g}; cosine {:.9f}",
                        distance->different, distance->absolute, distance->relative, distance->cosine);
  return text;
}

void print(const Differences& found, const NamedTensors& a, const NamedTensors& b) {
  fmt::print("A  {}\nB  {}\n", a.from.string(), b.from.string());
  for (const DifferentTensor& tensor : found.tensors) fmt::print("{}  {}\n", in_quotes(tensor.name), text_of(tensor));
  for (const DifferentFact& fact : found.facts)
    fmt::print("{}  {} in A, {} in B\n", fact.what, fact.a.empty() ? "nothing" : fact.a,
               fact.b.empty() ? "nothing" : fact.b);
  if (found.none()) fmt::print("equal: {} tensors\n", found.compared);
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
    if (tensor.distance) {
      entry["different"] = tensor.distance->different;
      entry["max_abs"] = tensor.distance->absolute;
      entry["max_rel"] = tensor.distance->relative;
      entry["cosine"] = tensor.distance->cosine;
    }
    json["tensors"].push_back(std::move(entry));
  }
  json["meta"] = Json::array();
  for (const DifferentFact& fact : found.facts)
    json["meta"].push_back({{"what", fact.what}, {"a", fact.a}, {"b", fact.b}});
  return json;
}

NamedTensors read(FileSystem& files, const std::string& path) {
  NamedTensors named = named_tensors(files, path, "its path");
  for (const std::string& remark : named.remarks) print_to_stderr(remark + "\n");
  return named;
}

}  // namespace

void ckpt_diff(std::span<const std::string> args) {
  bool json = false, tensors_only = false;
  const CommandLine line{.command = "gradring ckpt diff",
                         .options = {CommandOption{.name = "tensors-only",
                                                   .letter = 0,
                                                   .value = {},
                                                   .help = "leave out steps, counters and settings",
                                                   .read = set_switch("tensors-only", tensors_only)},
                                     json_switch(json)},
                         .takes_words = true};
  const CommandWords words = read_command_line(line, args);
  if (words.help) {
    fmt::print("{}{}", kHead, help_of(line.options));
    return;
  }
  if (words.words.size() != 2) throw UsageError("name two to compare: gradring ckpt diff A B");
  PosixFileSystem files;
  const NamedTensors a = read(files, words.words[0]), b = read(files, words.words[1]);
  const Differences found = compare(a, b, tensors_only);
  if (json)
    print_json(to_json(found, a, b));
  else
    print(found, a, b);
  if (!found.none())
    throw DifferenceError(fmt::format("{} and {} differ in {} tensors and {} settings or counters", a.from.string(),
                                      b.from.string(), found.tensors.size(), found.facts.size()));
}

}  // namespace gradring::train
