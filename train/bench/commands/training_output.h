// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
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
  Replace replace = Replace::ours;
  bool list = false;  ///< name what would be trained, and train nothing
};

/// --dataset, --data-dir, then `more`, then --epochs, --steps, --rounds, --list and the files.
std::vector<Option> training_bench_options(TrainingBenchOptions& options, std::vector<Option> more);

/// Prints a line for each layout: its name, and the command that trains it. Says why a GPU is missing that --device
/// cuda would use.
void list_layouts(std::span<const bench::TrainingLayout> layouts, const bench::TrainingTask& task);

/// The benchmark's beginning, before anything is trained.
///
/// Errors    UsageError if a file may not be replaced.
bench::BenchRun begin_bench(const std::string& benchmark, const TrainingBenchOptions& options);

/// Prints the table, and writes JSON and CSV: the end of the benchmark.
///
/// Errors    EnvironmentError with path and reason.
void write_table(bench::BenchRun& run, const bench::TrainingTable& table, const TrainingBenchOptions& options);

}  // namespace gradring::train
