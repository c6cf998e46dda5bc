// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/bench/provenance.h"
#include "kernels/bench/statistics.h"

namespace gradring::train {

/// Writes the file that a benchmark's -J names: {"benchmark": ..., "machine": ..., "date": ..., "commit": ..., and the
/// members of `results`}. An empty path writes nothing.
///
/// Errors    EnvironmentError with path and reason.
void write_bench_file(const std::string& path, const std::string& benchmark,
                      const kernels::bench::Provenance& provenance, const nlohmann::json& results);

/// {"median": ..., "p95": ..., ...}, each value times `unit`.
nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit = 1);

}  // namespace gradring::train
