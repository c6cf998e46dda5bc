// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "comm/bench/all_reduce_bench.h"
#include "kernels/bench/statistics.h"
#include "train/bench/bench_run.h"
#include "train/bench/commands/allreduce_options.h"

namespace gradring::train {

/// Result for one size; times in seconds.
struct AllReduceRow {
  std::size_t elements = 0;
  std::size_t bytes = 0;
  kernels::bench::Statistics ours;
  double coefficient_of_variation = 0;  ///< of our times, in percent
  std::optional<kernels::bench::Statistics> gloo{};
  std::optional<std::size_t> wrong{};  ///< elements, over all ranks

  double ratio() const { return gloo->median / ours.median; }
  double algorithm_gigabytes() const { return comm::bench::algorithm_bandwidth(bytes, ours.median) / 1e9; }
  double bus_gigabytes(int world_size) const {
    return comm::bench::bus_bandwidth(bytes, ours.median, world_size) / 1e9;
  }
};

/// Results of a run of the benchmark.
struct AllReduceReport {
  std::string title{};  ///< BenchRun::title, of rank 0
  int world_size = 1;
  std::string peer{};  ///< "gloo of torch 1.13.0"; empty without comparison
  std::vector<AllReduceRow> rows{};
  std::size_t wrong = 0;  ///< elements, over all sizes and ranks
};

/// The table of nccl-tests, in parts that are printed as they are measured.
std::string table_head(const AllReduceReport& report, const AllReduceOptions& options);
std::string table_row(const AllReduceRow& row, const AllReduceReport& report, const AllReduceOptions& options);
std::string table_foot(const AllReduceReport& report, const AllReduceOptions& options);

/// The bus bandwidth over the size in bytes, with the peer's, as SVG.
std::string plot_of(const AllReduceReport& report, const AllReduceOptions& options);

/// For BenchRun::finish.
nlohmann::json results_of(const AllReduceReport& report, const AllReduceOptions& options);
void add_measurements(bench::BenchRun& run, const AllReduceReport& report, const AllReduceOptions& options);

}  // namespace gradring::train
