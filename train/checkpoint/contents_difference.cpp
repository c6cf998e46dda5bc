// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/contents_difference.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace gradring::train {
namespace {

using Facts = std::map<std::string, std::string>;

const TensorRecord* find(std::span<const TensorRecord> tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &TensorRecord::name);
  return found == tensors.end() ? nullptr : &*found;
}

/// Each line of "name = value" by its name.
void add_settings(const std::string& text, Facts& facts) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const auto end = line.find(" = "); end != line.npos)
      facts["settings: " + line.substr(0, end)] = line.substr(end + 3);
}

Facts facts_of(const Checkpoint& checkpoint) {
  Facts facts = {{"step", std::to_string(checkpoint.step)}};
  if (checkpoint.score) facts["score"] = nlohmann::ordered_json(*checkpoint.score).dump();
  const nlohmann::ordered_json about = checkpoint.about.flatten();
  for (const auto& [name, value] : about.items()) {
    if (name == "/progress/seconds" || name == "/settings_sha256") continue;
    if (name == "/settings" && value.is_string())
      add_settings(value.get<std::string>(), facts);
    else
      facts[name] = value.dump();
  }
  return facts;
}

}  // namespace

std::vector<DifferentTensor> different_tensors(std::span<const TensorRecord> a, std::span<const TensorRecord> b) {
  std::vector<DifferentTensor> different;
  for (const TensorRecord& tensor : a) {
    const TensorRecord* other = find(b, tensor.name);
    if (other && *other == tensor) continue;
    DifferentTensor found{.name = tensor.name, .a = tensor, .b = std::nullopt, .distance = std::nullopt};
    if (other) found.b = *other;
    if (other && other->shape == tensor.shape) found.distance = distance_between(tensor, *other);
    different.push_back(std::move(found));
  }
  for (const TensorRecord& tensor : b)
    if (!find(a, tensor.name))
      different.push_back({.name = tensor.name, .a = std::nullopt, .b = tensor, .distance = std::nullopt});
  return different;
}

std::vector<DifferentFact> different_facts(const Checkpoint& a, const Checkpoint& b) {
  const Facts of_a = facts_of(a), of_b = facts_of(b);
  Facts names = of_a;
  names.insert(of_b.begin(), of_b.end());
  const auto said = [](const Facts& facts, const std::string& name) {
    const auto found = facts.find(name);
    return found == facts.end() ? std::string() : found->second;
  };
  std::vector<DifferentFact> different;
  for (const auto& [name, unused] : names)
    if (said(of_a, name) != said(of_b, name)) different.push_back({name, said(of_a, name), said(of_b, name)});
  return different;
}

}  // namespace gradring::train
