// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// Work of a step that no simulated GPU can count, such as a library's: its total would be too small.
class UncountedWork : public Error {
 public:
  using Error::Error;
};

/// Sums over the nodes of the graphs that a step launches.
struct StepTotal {
  struct Sum {
    std::size_t nodes = 0;
    std::uint64_t warp_instructions = 0;
    double machine_instructions = 0;  ///< estimated
    double bound_seconds = 0;
  };
  Sum all;
  Sum critical_path;                 ///< the nodes that the end of the step waits for, by their bounds
  std::vector<std::size_t> on_path;  ///< their indices, in order
  std::size_t excluded = 0;          ///< nodes without counts, which were excluded by name
};

/// `work`: what a simulated GPU counted of one step. `excluded`: names of nodes that count as nothing.
///
/// Errors    UncountedWork if a node has no counts and is not excluded, or no graph was launched; UsageError if no node
///           has a name that is excluded.
StepTotal total_of(std::span<const simulated_gpu::CountedWork> work, std::span<const std::string> excluded);

/// A row for each node, those of the critical path marked by *, then the total, and the lines that cost most.
std::string step_table(std::span<const simulated_gpu::CountedWork> work, const StepTotal& total);

/// Every counter of the kernels of each name, {"kernel", name}, and of the step: of all its kernels, its nodes, and the
/// bound of the critical path. `key`: of the step.
std::vector<BenchMeasurement> measurements_of(const MeasurementKey& key,
                                              std::span<const simulated_gpu::CountedWork> work, const StepTotal& total);

/// {"total": {"nodes": ..., "warp_instructions": ..., ...}, "critical_path": {...}, "nodes": [...], "lines": [...]}
nlohmann::json to_json(std::span<const simulated_gpu::CountedWork> work, const StepTotal& total);

}  // namespace gradring::train::bench
