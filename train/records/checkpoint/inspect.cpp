// SPDX-License-Identifier: Apache-2.0
#include "train/records/checkpoint/inspect.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <string_view>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

void compare(double a, double b, TensorDistance& distance) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return;
  ++distance.different;
  if (!std::isfinite(a) || !std::isfinite(b)) {
    ++distance.non_finite;
    return;
  }
  const double apart = std::abs(a - b);
  distance.absolute = std::max(distance.absolute, apart);
  distance.relative = std::max(distance.relative, apart / std::max(std::abs(a), std::abs(b)));
}

std::optional<double> cosine_of(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  bool any = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) continue;
    any = true;
    ab += a[i] * b[i];
    aa += a[i] * a[i];
    bb += b[i] * b[i];
  }
  if (!any) return std::nullopt;
  if (aa == 0 && bb == 0) return 1;
  if (aa == 0 || bb == 0) return 0;
  const double cosine = ab / std::sqrt(aa) / std::sqrt(bb);
  return std::isfinite(cosine) ? std::optional(cosine) : std::nullopt;  // squares above the largest double
}

using Facts = std::map<std::string, std::string>;

std::map<std::string_view, const TensorRecord*> by_name(std::span<const TensorRecord> tensors) {
  std::map<std::string_view, const TensorRecord*> all;
  for (const TensorRecord& tensor : tensors) all.emplace(tensor.name, &tensor);
  return all;
}

/// Adds each line "name = value".
void add_settings(const std::string& text, Facts& facts) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (const auto end = line.find(" = "); end != line.npos)
      facts["settings: " + line.substr(0, end)] = line.substr(end + 3);
}

Facts facts_of(const Checkpoint& checkpoint) {
  Facts facts = {{"step", std::to_string(checkpoint.step)}};
  if (checkpoint.score) facts["score"] = nlohmann::ordered_json(*checkpoint.score).dump();
  const nlohmann::ordered_json about = checkpoint.about->flatten();
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

std::optional<TensorStatistics> statistics_of(const TensorRecord& tensor) {
  const auto values = values_of(tensor);
  if (!values) return std::nullopt;
  std::vector<double> finite = *values;
  std::erase_if(finite, [](double value) { return !std::isfinite(value); });
  TensorStatistics found{.elements = static_cast<std::int64_t>(values->size()),
                         .non_finite = static_cast<std::int64_t>(values->size() - finite.size())};
  if (finite.empty()) return found;
  const auto count = static_cast<double>(finite.size());
  found.least = *std::ranges::min_element(finite);
  found.most = *std::ranges::max_element(finite);
  found.mean = std::accumulate(finite.begin(), finite.end(), 0.0) / count;
  double squares = 0;
  for (const double value : finite) squares += (value - found.mean) * (value - found.mean);
  found.deviation = std::sqrt(squares / count);
  return found;
}

std::optional<TensorDistance> distance_between(const TensorRecord& a, const TensorRecord& b) {
  check(a.shape == b.shape, "cannot compare tensors of shapes " + shape_text(a.shape) + " and " + shape_text(b.shape));
  const auto values_of_a = values_of(a), values_of_b = values_of(b);
  if (!values_of_a || !values_of_b) return std::nullopt;
  TensorDistance distance;
  for (std::size_t i = 0; i < values_of_a->size(); ++i) compare((*values_of_a)[i], (*values_of_b)[i], distance);
  if (distance.different > 0) distance.cosine = cosine_of(*values_of_a, *values_of_b);
  return distance;
}

std::vector<DifferentTensor> different_tensors(std::span<const TensorRecord> a, std::span<const TensorRecord> b) {
  const auto in_a = by_name(a), in_b = by_name(b);
  std::vector<DifferentTensor> different;
  for (const TensorRecord& tensor : a) {
    const auto found_in_b = in_b.find(tensor.name);
    const TensorRecord* other = found_in_b == in_b.end() ? nullptr : found_in_b->second;
    if (other && *other == tensor) continue;
    DifferentTensor found{.name = tensor.name, .a = tensor, .b = std::nullopt, .distance = std::nullopt};
    if (other) found.b = *other;
    if (other && other->shape == tensor.shape) found.distance = distance_between(tensor, *other);
    different.push_back(std::move(found));
  }
  for (const TensorRecord& tensor : b)
    if (!in_a.contains(tensor.name))
      different.push_back({.name = tensor.name, .a = std::nullopt, .b = tensor, .distance = std::nullopt});
  return different;
}

std::vector<DifferentFact> different_facts(const Checkpoint& a, const Checkpoint& b) {
  std::map<std::string, std::pair<std::string, std::string>> merged;
  for (const auto& [name, value] : facts_of(a)) merged[name].first = value;
  for (const auto& [name, value] : facts_of(b)) merged[name].second = value;
  std::vector<DifferentFact> different;
  for (const auto& [name, values] : merged)
    if (values.first != values.second) different.push_back({name, values.first, values.second});
  return different;
}

}  // namespace gradring::train
