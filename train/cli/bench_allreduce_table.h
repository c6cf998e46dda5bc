// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/provenance.h"
#include "kernels/bench/statistics.h"
#include "train/cli/bench_allreduce_options.h"

namespace gradring::train {

/// What was found out about one size; times in seconds.
struct AllReduceRow {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  kernels::bench::Statistics ours;
  double coefficient_of_variation = 0;  ///< of our times, in percent
  std::optional<kernels::bench::Statistics> gloo{};
  std::optional<std::size_t> wrong{};  ///< elements, over all ranks

  double ratio() const { return gloo->median / ours.median; }
};

/// Everything that is known about a run of the benchmark.
struct AllReduceReport {
  kernels::bench::Provenance provenance;
  int world_size = 1;
  std::string peer{};  ///< "gloo of torch 1.13.0"; empty without comparison
  std::vector<AllReduceRow> rows{};

  std::size_t wrong() const;
  double average_bus_bandwidth() const;  ///< GB/s
};

/// The lines of the table, as nccl-tests prints them: what begins with # is no row.
std::string table_head(const AllReduceReport& report, const AllReduceBenchOptions& options);
std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceBenchOptions& options);
std::string table_foot(const AllReduceReport& report, const AllReduceBenchOptions& options);

/// The same for write_bench_file.
nlohmann::json results_of(const AllReduceReport& report, const AllReduceBenchOptions& options);

}  // namespace gradring::train
