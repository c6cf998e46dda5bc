// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "train/bench/measurement.h"

namespace gradring::train::bench {

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
