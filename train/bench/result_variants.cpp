// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "kernels/bench/statistics.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

constexpr const char* kVariant = "variant";
constexpr std::array<std::string_view, 3> kWork = {"case", "shape", "dtype"};

/// The key's members in `kWork`, or the others but the variant.
MeasurementKey members(const MeasurementKey& key, bool of_work) {
  MeasurementKey found;
  for (const auto& member : key)
    if (member.first != kVariant && (std::ranges::find(kWork, member.first) != kWork.end()) == of_work)
      found.push_back(member);
  return found;
}

/// The element for which `is_it` holds; `made` is appended if it is missing.
template <class T, class IsIt>
T& found_or(std::vector<T>& all, const IsIt& is_it, T made) {
  const auto found = std::ranges::find_if(all, is_it);
  return found != all.end() ? *found : all.emplace_back(std::move(made));
}

void add(std::vector<VariantsGroup>& groups, const BenchMeasurement& measured) {
  const MeasurementKey work = members(measured.key, true), rest = members(measured.key, false);
  VariantsGroup& group = found_or(groups, [&](const VariantsGroup& each) { return each.work == work; }, {.work = work});
  const std::string variant = value_of(measured.key, kVariant);
  const std::string& name = found_or(
      group.variants, [&](const std::string& each) { return each == variant; }, variant);
  const auto column = static_cast<std::size_t>(&name - group.variants.data());
  VariantsRow& row =
      found_or(group.rows, [&](const VariantsRow& each) { return each.key == rest && each.unit == measured.unit; },
               {.key = rest, .unit = measured.unit});
  row.medians.resize(std::max(row.medians.size(), column + 1));
  row.medians[column] = kernels::bench::statistics_of(measured.samples).median;
}

}  // namespace

std::vector<VariantsGroup> variants_of(const BenchResult& result) {
  std::vector<VariantsGroup> groups;
  for (const BenchMeasurement& measured : result.measurements)
    if (!value_of(measured.key, kVariant).empty()) add(groups, measured);
  if (groups.empty())
    throw UsageError(fmt::format("{} is of bench {} and has no variants to compare: name a second file to compare with",
                                 result.path.string(), result.benchmark));
  for (VariantsGroup& group : groups)
    for (VariantsRow& row : group.rows) row.medians.resize(group.variants.size());
  return groups;
}

}  // namespace gradring::train::bench
