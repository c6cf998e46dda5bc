// SPDX-License-Identifier: Apache-2.0
#include "train/bench/result_diff.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "kernels/base/error.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

/// The largest smaller sample of the exact distribution, as scipy's.
constexpr std::size_t kMostExact = 8;

struct RankSum {
  double of_one = 0;  ///< ranks of the first sample's values among all, from 1; equal values share their mean rank
  double ties = 0;    ///< sum of t^3 - t over groups of t equal values
};

RankSum rank_sum(std::span<const double> one, std::span<const double> other) {
  std::vector<std::pair<double, bool>> all;  // whether it is of the first sample
  for (const double value : one) all.emplace_back(value, true);
  for (const double value : other) all.emplace_back(value, false);
  std::ranges::sort(all);
  RankSum sum;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    while (end < all.size() && all[end].first == all[begin].first) ++end;
    const double rank = static_cast<double>(begin + 1 + end) / 2;
    const auto tied = static_cast<double>(end - begin);
    sum.ties += tied * tied * tied - tied;
    for (std::size_t i = begin; i < end; ++i) sum.of_one += all[i].second ? rank : 0;
  }
  return sum;
}

/// P(U >= u) without ties. ways[i][u]: orders of i values of one sample and j of the other with statistic u; each order
/// ends with a value of either: N(i, j, u) = N(i - 1, j, u - j) + N(i, j - 1, u).
double exact_tail(std::size_t i_most, std::size_t j_most, double u) {
  const std::size_t u_most = i_most * j_most;
  std::vector<std::vector<double>> ways(i_most + 1, std::vector<double>(u_most + 1, 0));
  for (auto& row : ways) row[0] = 1;  // j = 0
  for (std::size_t j = 1; j <= j_most; ++j)
    for (std::size_t i = 1; i <= i_most;
         ++i)  // ways[i] is N(i, j - 1, .) until here, ways[i - 1] already N(i - 1, j, .)
      for (std::size_t k = j; k <= u_most; ++k) ways[i][k] += ways[i - 1][k - j];
  double all = 0, tail = 0;
  for (std::size_t k = 0; k <= u_most; ++k) {
    all += ways[i_most][k];
    if (static_cast<double>(k) >= u) tail += ways[i_most][k];
  }
  return tail / all;
}

/// The same by the normal distribution.
double normal_tail(double n1, double n2, double u, double ties) {
  const double n = n1 + n2;
  const double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
  if (variance <= 0) return 0.5;  // all values are equal
  return 0.5 * std::erfc((u - n1 * n2 / 2 - 0.5) / std::sqrt(variance) / std::sqrt(2.0));
}

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

/// A row of each file.
struct Pair {
  const BenchMeasurement* before;
  const BenchMeasurement* after;
  MeasurementKey key;  ///< what both have in common
};

/// Moves the rows that have the same key, without the ignored members, and unit from both files' rows to `pairs`.
void match(Rows& before, Rows& after, std::vector<Pair>& pairs, const BenchResult& old_result,
           const BenchResult& new_result, const std::vector<std::string>& ignored) {
  rows_by_key(after, new_result, ignored);  // checks the keys
  RowsByKey unmatched = rows_by_key(before, old_result, ignored);
  std::erase_if(after, [&](const BenchMeasurement* row) {
    MeasurementKey key = without(row->key, ignored);
    const auto found = unmatched.find(sorted_key(key));
    if (found == unmatched.end() || found->second->unit != row->unit) return false;
    pairs.push_back({found->second, row, std::move(key)});
    unmatched.erase(found);
    return true;
  });
  std::erase_if(
      before, [&](const BenchMeasurement* row) { return !unmatched.contains(sorted_key(without(row->key, ignored))); });
}

/// The spread of a difference of independent values.
double spread_of_both(const DiffRow& row) { return std::hypot(row.old_values.spread, row.new_values.spread); }

/// `least_change`: kRunToRun, or 0.
DiffVerdict verdict_of(const DiffRow& row, Better better, const DiffSpec& spec, double least_change) {
  const double difference = row.new_values.median - row.old_values.median;
  const auto verdict = [&] {
    if (better == Better::neither) return DiffVerdict::changed;
    return (difference > 0) == (better == Better::higher) ? DiffVerdict::faster : DiffVerdict::slower;
  };
  if (row.is_exact && !spec.threshold) return difference == 0 ? DiffVerdict::same : verdict();
  const bool enough = std::min(row.old_values.count, row.new_values.count) >= kLeastRepetitions;
  if (!spec.threshold && !enough) return DiffVerdict::unknown;
  const double median = std::abs(row.old_values.median);
  const double limit = spec.threshold ? *spec.threshold * median : std::max(spread_of_both(row), least_change * median);
  const bool counts = std::abs(difference) > limit && (spec.threshold || row.p_value < kSignificance);
  return counts ? verdict() : DiffVerdict::same;
}

DiffRow compared(const Pair& pair, const DiffSpec& spec, double least_change) {
  const BenchMeasurement &before = *pair.before, &after = *pair.after;
  DiffRow row{.key = pair.key,
              .unit = after.unit,
              .old_values = kernels::bench::statistics_of(before.samples),
              .new_values = kernels::bench::statistics_of(after.samples),
              .change = {},
              .p_value = rank_test(before.samples, after.samples),
              .is_exact = before.is_exact && after.is_exact};
  const double median = row.old_values.median;
  if (median != 0) {
    row.change = row.new_values.median / median - 1;
    row.noise = spread_of_both(row) / std::abs(median);
  }
  row.verdict = verdict_of(row, after.better, spec, least_change);
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
  constexpr std::string_view kNames[] = {"same", "faster", "slower", "unknown", "changed"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::size_t ResultDiff::count(DiffVerdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows, verdict, &DiffRow::verdict));
}

ResultDiff diff_results(const BenchResult& old_result, const BenchResult& new_result, const DiffSpec& spec) {
  if (old_result.benchmark != new_result.benchmark)
    throw UsageError(fmt::format("{} is a result of bench {}, but {} of bench {}: compare results of one benchmark",
                                 old_result.path.string(), old_result.benchmark, new_result.path.string(),
                                 new_result.benchmark));
  Rows before, after;
  for (const BenchMeasurement& each : old_result.measurements) before.push_back(&each);
  for (const BenchMeasurement& each : new_result.measurements) after.push_back(&each);
  std::vector<Pair> pairs;
  match(before, after, pairs, old_result, new_result, {});
  match(before, after, pairs, old_result, new_result, spec.ignored);
  std::ranges::sort(pairs, {}, &Pair::after);  // in the new file's order
  ResultDiff diff{.rows = {}, .only_old = {}, .only_new = {}, .warnings = warnings_of(old_result, new_result)};
  const double least_change = old_result.files > 1 && new_result.files > 1 ? 0 : kRunToRun;
  for (const Pair& pair : pairs) diff.rows.push_back(compared(pair, spec, least_change));
  for (const BenchMeasurement* row : before) diff.only_old.push_back(row->key);
  for (const BenchMeasurement* row : after) diff.only_new.push_back(row->key);
  return diff;
}

double rank_test(std::span<const double> one, std::span<const double> other) {
  check(!one.empty() && !other.empty(), "the rank test needs values on both sides");
  const auto n1 = static_cast<double>(one.size());
  const auto n2 = static_cast<double>(other.size());
  const RankSum sum = rank_sum(one, other);
  const double u1 = sum.of_one - n1 * (n1 + 1) / 2;
  const double u = std::max(u1, n1 * n2 - u1);
  const bool exact = sum.ties == 0 && std::min(one.size(), other.size()) <= kMostExact;
  const double tail = exact ? exact_tail(std::min(one.size(), other.size()), std::max(one.size(), other.size()), u)
                            : normal_tail(n1, n2, u, sum.ties);
  return std::min(1.0, 2 * tail);
}

}  // namespace gradring::train::bench
