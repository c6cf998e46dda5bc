// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "kernels/bench/statistics.h"
#include "kernels/runtime/stream.h"
#include "train/options/command_line.h"

namespace gradring::train {

inline constexpr double kMicroseconds = 1e6;  ///< in a second

/// --dataset and --data-dir, and then `more`. `data_dir` gets its default here: GRADRING_DATA_DIR, as for training.
std::vector<Option> dataset_options(std::string& dataset, std::string& data_dir, std::vector<Option> more);

/// --nprocs, with the older spelling of a benchmark.
template <class Integer>
Option nprocs_option(const std::string& help, const std::string& old_name, Integer& value) {
  Option option = count_option("nprocs", help, 1, value);
  option.aliases = {old_name};
  return option;
}

/// Writes the file that -J names: {"benchmark": ..., "machine": ..., "date": ..., "commit": ..., and the
/// members of `results`}. An empty path writes nothing.
///
/// Errors    EnvironmentError with path and reason.
void write_bench_file(const std::string& path, const std::string& benchmark,
                      const kernels::bench::Provenance& provenance, const nlohmann::json& results);

/// {"median": ..., "p95": ..., ...}, each value times `unit`.
nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit = 1);

/// "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 0 B, 48 of 64 warps", and local memory if
/// used; without a GPU's resources "sum_kernel<float>: 1 x 1 threads, shared dynamic 0 B".
std::string to_string(const kernels::LaunchReport& launch);

/// {"kernel": ..., "blocks": ..., "threads": ..., "dynamic_shared_bytes": ..., and on a GPU "registers": ...,
/// "local_bytes": ..., "static_shared_bytes": ..., "resident_warps": ..., "most_warps": ...}
nlohmann::json to_json(const kernels::LaunchReport& launch);

}  // namespace gradring::train
