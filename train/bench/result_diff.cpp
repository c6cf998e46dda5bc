// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "train/bench/rank_test.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

/// Clocks that differ by more make other times.
constexpr double kClockTolerance = 0.05;

MeasurementKey without(MeasurementKey key, const std::vector<std::string>& ignored) {
  std::erase_if(key, [&](const auto& member) { return std::ranges::find(ignored, member.first) != ignored.end(); });
  return key;
}

using Rows = std::vector<const BenchMeasurement*>;
/// Rows by their keys; members in any order.
using RowsByKey = std::map<MeasurementKey, const BenchMeasurement*>;

MeasurementKey sorted_key(MeasurementKey key) {
  std::ranges::sort(key);
  return key;
}

/// Of `rows`, which are of `result`.
RowsByKey rows_by_key(const Rows& rows, const BenchResult& result, const std::vector<std::string>& ignored) {
  RowsByKey by_key;
  for (const BenchMeasurement* each : rows) {
    const auto [row, fresh] = by_key.emplace(sorted_key(without(each->key, ignored)), each);
    if (!fresh)
      throw UsageError(fmt::format("without {}, two rows of {} have the same key: ignore fewer members",
                                   fmt::join(ignored, ", "), result.path.string()));
  }
  return by_key;
}

/// A row of the new file and its counterpart.
struct Pair {
  const BenchMeasurement* before = nullptr;  ///< null: none yet
  const BenchMeasurement* after = nullptr;
  MeasurementKey key{};  ///< what both have in common
};

/// Finds a counterpart for each row of `pairs` that has none among `rows`, and returns the rows that are left.
Rows match(std::vector<Pair>& pairs, const Rows& rows, const BenchResult& old_result, const BenchResult& new_result,
           const std::vector<std::string>& ignored) {
  Rows unmatched;
  for (const Pair& pair : pairs)
    if (pair.before == nullptr) unmatched.push_back(pair.after);
  rows_by_key(unmatched, new_result, ignored);  // checks the keys
  RowsByKey by_key = rows_by_key(rows, old_result, ignored);
  for (Pair& pair : pairs) {
    if (pair.before != nullptr) continue;
    MeasurementKey key = without(pair.after->key, ignored);
    const auto found = by_key.find(sorted_key(key));
    if (found == by_key.end() || found->second->unit != pair.after->unit) continue;
    pair.before = found->second;
    pair.key = std::move(key);
    by_key.erase(found);
  }
  Rows left;
  for (const BenchMeasurement* row : rows)
    if (by_key.contains(sorted_key(without(row->key, ignored)))) left.push_back(row);
  return left;
}

/// The spread of a difference of independent values.
double spread_of_both(const DiffRow& row) { return std::hypot(row.old_values.spread, row.new_values.spread); }

/// `least_change`: kRunToRun, or 0.
DiffVerdict verdict_of(const DiffRow& row, bool higher_is_better, const DiffSpec& spec, double least_change) {
  const double difference = row.new_values.median - row.old_values.median;
  const bool enough = std::min(row.old_values.count, row.new_values.count) >= kLeastRepetitions;
  if (!spec.threshold && !enough) return DiffVerdict::unknown;
  const double median = std::abs(row.old_values.median);
  const double limit = spec.threshold ? *spec.threshold * median : std::max(spread_of_both(row), least_change * median);
  const bool counts = std::abs(difference) > limit && (spec.threshold || row.p_value < kSignificance);
  if (!counts) return DiffVerdict::same;
  return (difference > 0) == higher_is_better ? DiffVerdict::faster : DiffVerdict::slower;
}

DiffRow compared(const Pair& pair, const DiffSpec& spec, double least_change) {
  const BenchMeasurement &before = *pair.before, &after = *pair.after;
  DiffRow row{.key = pair.key,
              .unit = after.unit,
              .old_values = kernels::bench::statistics_of(before.samples),
              .new_values = kernels::bench::statistics_of(after.samples),
              .change = {},
              .p_value = rank_test(before.samples, after.samples)};
  const double median = row.old_values.median;
  if (median != 0) {
    row.change = row.new_values.median / median - 1;
    row.noise = spread_of_both(row) / std::abs(median);
  }
  row.verdict = verdict_of(row, after.higher_is_better, spec, least_change);
  return row;
}

void warn_of_clocks(const char* what, std::optional<double> before, std::optional<double> after,
                    std::vector<std::string>& warnings) {
  if (before && after && std::abs(*after - *before) > kClockTolerance * *before)
    warnings.push_back(
        fmt::format("{} was {:.0f} MHz in the old file, but {:.0f} MHz in the new one", what, *before, *after));
}

bool is_rebuildable(const std::string& commit) {
  return !commit.empty() && commit != "unknown" && !commit.ends_with("-dirty");
}

std::vector<std::string> warnings_of(const BenchResult& before, const BenchResult& after) {
  std::vector<std::string> warnings;
  for (std::size_t i = 0; i < before.environment.size(); ++i)
    if (before.environment[i].second != after.environment[i].second)
      warnings.push_back(fmt::format("{} differs: '{}' in the old file, '{}' in the new one",
                                     before.environment[i].first, before.environment[i].second,
                                     after.environment[i].second));
  warn_of_clocks("the CPU clock", before.cpu_mhz, after.cpu_mhz, warnings);
  warn_of_clocks("the GPU's SM clock", before.gpu_mhz, after.gpu_mhz, warnings);
  for (const BenchResult* result : {&before, &after}) {
    if (!is_rebuildable(result->commit))
      warnings.push_back(
          fmt::format("{} is of commit '{}', which nobody can build again: commit the change, then measure",
                      result->path.string(), result->commit));
    for (const std::string& warning : result->warnings)
      warnings.push_back(fmt::format("{}: {}", result->path.string(), warning));
  }
  return warnings;
}

}  // namespace

std::string_view name_of(DiffVerdict verdict) {
  switch (verdict) {
    case DiffVerdict::same: return "same";
    case DiffVerdict::faster: return "faster";
    case DiffVerdict::slower: return "slower";
    case DiffVerdict::unknown: return "unknown";
  }
  return "";
}

std::size_t ResultDiff::count(DiffVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &DiffRow::verdict));
}

ResultDiff diff_results(const BenchResult& old_result, const BenchResult& new_result, const DiffSpec& spec) {
  if (old_result.benchmark != new_result.benchmark)
    throw UsageError(fmt::format("{} is a result of bench {}, but {} of bench {}: compare results of one benchmark",
                                 old_result.path.string(), old_result.benchmark, new_result.path.string(),
                                 new_result.benchmark));
  Rows rows;
  for (const BenchMeasurement& each : old_result.measurements) rows.push_back(&each);
  std::vector<Pair> pairs;
  for (const BenchMeasurement& each : new_result.measurements) pairs.push_back({.after = &each});
  rows = match(pairs, rows, old_result, new_result, {});
  rows = match(pairs, rows, old_result, new_result, spec.ignored);
  ResultDiff diff{.rows = {}, .only_old = {}, .only_new = {}, .warnings = warnings_of(old_result, new_result)};
  const double least_change = old_result.files > 1 && new_result.files > 1 ? 0 : kRunToRun;
  for (const Pair& pair : pairs) {
    if (pair.before == nullptr)
      diff.only_new.push_back(pair.after->key);
    else
      diff.rows.push_back(compared(pair, spec, least_change));
  }
  for (const BenchMeasurement* row : rows) diff.only_old.push_back(row->key);
  return diff;
}

}  // namespace gradring::train::bench
