// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "train/bench/bench_run.h"
#include "train/bench/measured_training.h"
#include "train/bench/training_table.h"
#include "train/options/command_line.h"

namespace gradring::train {

/// What `bench parallel` and `bench scaling` train, and where their results go.
struct TrainingBenchOptions {
  bench::TrainingTask task;
  std::int64_t rounds = 1;
  std::string json_file;  ///< empty: none, as all files
  std::string csv_file;
  std::string html_file;
  std::string plots;  ///< prefix of SVG files
};

/// --dataset, --data-dir, then `more`, then --epochs, --steps, --rounds and the files.
std::vector<Option> training_bench_options(TrainingBenchOptions& options, std::vector<Option> more);

/// The benchmark's beginning, before anything is trained.
bench::BenchRun begin_bench(const std::string& benchmark, const TrainingBenchOptions& options);

/// Prints the table, and writes JSON and CSV: the end of the benchmark.
///
/// Errors    EnvironmentError with path and reason.
void write_table(bench::BenchRun& run, const bench::TrainingTable& table, const TrainingBenchOptions& options);

}  // namespace gradring::train
