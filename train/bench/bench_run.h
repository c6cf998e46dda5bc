// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "kernels/bench/statistics.h"
#include "train/bench/machine_state.h"
#include "train/bench/result_file.h"
#include "train/core/setup/named_output.h"

namespace gradring::train::bench {

/// The files that a benchmark writes; empty paths: none.
struct BenchFiles {
  std::string json;  ///< -J: docs/bench.schema.json
  std::string csv;   ///< --csv-file: a line for each measurement
  Replace replace = Replace::ours;
};

/// Checks that the files may be written (setup/named_output.h). BenchRun does at its start; a benchmark that starts other
/// processes first does so itself.
///
/// Errors    UsageError.
void check_files(const BenchFiles& files);

/// A benchmark from its start to its files. It reads load and clocks at both ends, and warns on stderr where other
/// programs disturb. Every `gradring bench` has one, on rank 0.
///
///   BenchRun run("loader", {.json = "loader.json"});
///   print(run.title());
///   run.add({.key = {{"dataset", "mnist"}, {"name", "fill"}}, .samples = {310, 312, 309}});
///   run.finish({{"batch_size", 256}});
///
/// Errors    UsageError if a file may not be replaced; of finish: EnvironmentError with path and reason.
class BenchRun {
 public:
  /// Starts. `gpu`: the number of the GPU that is measured, if any.
  explicit BenchRun(std::string benchmark, BenchFiles files = {}, std::optional<int> gpu = std::nullopt);

  /// Machine, date, commit; then clocks and load at the start. One line each, without an end.
  std::string title() const;

  void add(BenchMeasurement measurement);
  /// CPU seconds of other processes of this benchmark that still run, such as its other ranks.
  void add_processor_seconds(double seconds) { other_processes_ += seconds; }

  /// Ends, and writes the files. `results`: members of the benchmark's own, beside those of every benchmark. Called
  /// once; all processes that it started and that add_processor_seconds does not name must have ended.
  void finish(const nlohmann::json& results);

 private:
  nlohmann::ordered_json envelope(const nlohmann::json& results) const;

  std::string benchmark_;
  BenchFiles files_;
  std::optional<int> gpu_;
  kernels::bench::Provenance provenance_;
  std::chrono::system_clock::time_point began_;
  kernels::bench::Stopwatch watch_;
  MachineState start_, end_;
  double processor_seconds_ = 0;  // of this process, at the start
  double other_processes_ = 0;
  double seconds_ = 0;  // from start to end
  Interference interference_;
  std::vector<std::string> warnings_;
  std::vector<BenchMeasurement> measurements_;
};

}  // namespace gradring::train::bench
