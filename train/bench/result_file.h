// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gradring::train {

inline constexpr double kMicroseconds = 1e6;  ///< in a second

}  // namespace gradring::train

namespace gradring::train::bench {

/// What was measured: names and values, in the order in which tables show them. Two measurements of one key are of the
/// same work, so that files of two builds can be compared.
using MeasurementKey = std::vector<std::pair<std::string, std::string>>;

/// Which values of a quantity are better. neither: it explains others, as the registers of a kernel do.
enum class Better : std::uint8_t { lower, higher, neither };

/// Repeated measurements of one quantity.
struct BenchMeasurement {
  MeasurementKey key;
  std::string unit = "us";
  std::vector<double> samples;  ///< in their order; one at least
  Better better = Better::lower;
  bool is_exact = false;  ///< a count without noise: a difference of any size is one
};

/// The members of `settings`, then those of `more`.
inline MeasurementKey joined(MeasurementKey settings, const MeasurementKey& more) {
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

/// The value of a member; empty if the key has no such member.
inline std::string value_of(const MeasurementKey& key, const std::string& name) {
  const auto found = std::ranges::find(key, name, &MeasurementKey::value_type::first);
  return found == key.end() ? std::string() : found->second;
}

/// Names of the members of all keys of `rows`, each once, in order of appearance.
template <class Rows>
std::vector<std::string> key_names(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    for (const auto& [name, value] : row.key)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

nlohmann::ordered_json to_json(const MeasurementKey& key);
/// {"key": {"name": "fill"}, "unit": "us", "samples": [...]}; samples have six digits.
nlohmann::ordered_json to_json(const BenchMeasurement& measurement);

/// The measurements as CSV with a header line: a column for each name of a key, then unit, count, least, median, p95,
/// p99, most, mean, noise_percent.
std::string to_csv(const std::vector<BenchMeasurement>& measurements);

/// Six digits: more would be noise.
double six_digits(double value);

/// Whether a file begins as BenchRun's JSON, or its first line ends with the columns of every benchmark's CSV.
bool is_result_json(std::string_view head);
bool is_result_csv(std::string_view head);

/// What a benchmark wrote with -J, as far as every benchmark writes the same.
struct BenchResult {
  std::filesystem::path path;
  std::string benchmark;
  std::string commit;
  std::string date;
  std::vector<std::pair<std::string, std::string>> environment;  ///< host, machine, CPU level, governor, GPU
  std::optional<double> cpu_mhz;                                 ///< at the start
  std::optional<double> gpu_mhz;
  std::vector<std::string> warnings;
  std::vector<BenchMeasurement> measurements;
  std::size_t files = 1;  ///< of how many it was merged
};

/// Reads a file of schema 1 (docs/bench.schema.json).
///
/// Errors    data::DataError if it cannot be read, or is not such a file.
BenchResult read_bench_result(const std::filesystem::path& path);

/// Runs of one benchmark and build as one result: a sample is the median of a run, so that their spread is the one between
/// runs. One file stays as it is. Measurements that some files lack are left out.
///
/// Errors    data::DataError if they are of different benchmarks.
BenchResult merged(std::vector<BenchResult> results);

}  // namespace gradring::train::bench
