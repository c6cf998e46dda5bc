// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// Two-sided p-value of the Mann-Whitney U test: how probable it is that two samples of one distribution differ in rank
/// at least as much as these. It assumes no distribution, but independent measurements.
///
/// Numerics  exact without ties if one sample has at most 8 values; else the normal approximation, corrected for ties and
///           continuity. These are scipy.stats.mannwhitneyu's rules (method "auto").
/// Source    Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger than the Other",
///           1947.
/// Cost      O(n log n); exact: O(n1 n2 (n1 n2 / 2)) for small samples.
/// Errors    InvalidArgument if one is empty.
double rank_test(std::span<const double> one, std::span<const double> other);

/// unknown: too few repetitions to estimate their noise. changed: of a quantity of which neither value is better.
enum class DiffVerdict : std::uint8_t { same, faster, slower, unknown, changed };
std::string_view name_of(DiffVerdict verdict);

/// With fewer repetitions on either side, even a rank test of separated samples has p > kSignificance.
inline constexpr std::size_t kLeastRepetitions = 5;
inline constexpr double kSignificance = 0.02;
/// Medians of one program's runs differ by as much although the repetitions of each agree (docs/benchmarks.md).
inline constexpr double kRunToRun = 0.03;

/// One measurement that both results have.
struct DiffRow {
  MeasurementKey key;
  std::string unit;
  kernels::bench::Statistics old_values, new_values;
  std::optional<double> change;  ///< of the median, as a fraction of the old one; nothing if that is 0
  double noise = 0;              ///< the spread of both, as the same fraction
  double p_value = 1;            ///< of the rank test
  bool is_exact = false;         ///< a count: it has no noise
  DiffVerdict verdict = DiffVerdict::unknown;
};

/// How results are compared.
struct DiffSpec {
  std::optional<double> threshold{};  ///< change that counts, as a fraction; nothing: more than the noise
  /// Names of key members that may differ. Rows whose whole keys are in both files are of the same work all the same, such
  /// as a library's beside two variants, and are compared with each other.
  std::vector<std::string> ignored{};
};

struct ResultDiff {
  std::vector<DiffRow> rows;             ///< in the new file's order
  std::vector<MeasurementKey> only_old;  ///< missing in the new file
  std::vector<MeasurementKey> only_new;  ///< missing in the old file
  std::vector<std::string> warnings;     ///< why the comparison may mislead

  std::size_t count(DiffVerdict verdict) const;
};

/// Compares two results row by row. Without a threshold, a row is slower or faster if the medians differ by more than the
/// spread (Statistics::spread) of both, the root of the sum of their squares, and the rank test also finds a difference
/// (p < kSignificance). If a side is one run, they must also differ by more than kRunToRun. Counts, which have no noise,
/// are the same only if they are equal.
///
/// Errors    UsageError if the results are of different benchmarks, or if, without the ignored members, two rows of a
///           file have the same key, of those whose whole keys one file lacks.
ResultDiff diff_results(const BenchResult& old_result, const BenchResult& new_result, const DiffSpec& spec);

}  // namespace gradring::train::bench
