// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/tensor_differences.h"

#include <algorithm>
#include <set>

namespace gradring::train {
namespace {

/// "lacks 'a', 'b' and 3 more"
template <class List, class Describe>
void add_part(std::string& text, const std::string& verb, const List& list, Describe describe) {
  constexpr std::size_t kMostNamed = 5;
  if (list.empty()) return;
  text += (text.empty() ? "" : "; ") + verb;
  for (std::size_t i = 0; i < std::min(list.size(), kMostNamed); ++i) text += (i ? ", " : " ") + describe(list[i]);
  if (list.size() > kMostNamed) text += " and " + std::to_string(list.size() - kMostNamed) + " more";
}

}  // namespace

std::string TensorDifferences::to_string() const {
  std::string text;
  add_part(text, "lacks", missing, in_quotes);
  add_part(text, "has, which the model has not,", unexpected, in_quotes);
  add_part(text, "has", other_shape, [](const OtherShape& other) {
    return in_quotes(other.name) + " of " + shape_text(other.found) + ", not of " + shape_text(other.expected);
  });
  return text;
}

TensorDifferences compare_tensors(std::span<const TensorInfo> expected, std::span<const TensorInfo> found) {
  TensorDifferences differences;
  std::set<std::string_view> known;
  for (const TensorInfo& tensor : expected) {
    known.insert(tensor.name);
    const auto same_name = std::ranges::find(found, tensor.name, &TensorInfo::name);
    if (same_name == found.end())
      differences.missing.push_back(tensor.name);
    else if (same_name->shape != tensor.shape)
      differences.other_shape.push_back({tensor.name, tensor.shape, same_name->shape});
  }
  for (const TensorInfo& tensor : found)
    if (!known.contains(tensor.name)) differences.unexpected.push_back(tensor.name);
  return differences;
}

std::vector<TensorInfo> infos_of(std::span<const TensorRecord> tensors) { return {tensors.begin(), tensors.end()}; }

}  // namespace gradring::train
