// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/bench/statistics.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"
#include "train/bench/annotated_source.h"
#include "train/bench/bench_run.h"
#include "train/bench/result_file.h"
#include "train/core/config/train_config.h"
#include "train/core/setup/compute.h"
#include "train/options/command_line.h"
#include "train/options/print_text.h"

namespace gradring::train {

/// The dataset_options of `config`, and then `more`.
std::vector<Option> dataset_options(TrainConfig& config, std::vector<Option> more);

/// Opens a split of the data set that these options chose.
///
/// Errors    as check_image_options and data::open_dataset.
std::unique_ptr<data::Dataset> open_chosen(const TrainConfig& config, data::Split split = data::Split::train);

/// --simulate-gpu, --simulate-seed, --counters, --annotate, --annotate-with and --source-root.
struct SimulatedGpuOptions {
  std::string card = kRealGpus;
  std::uint64_t seed = 0;
  bool counters = false;
  bench::AnnotationSpec annotation{};

  /// Whether kernels are counted: annotated source needs the counts, too.
  bool counts() const { return counters || annotation.is_wanted(); }
};
Option simulate_gpu_option(SimulatedGpuOptions& options);
Option simulate_seed_option(SimulatedGpuOptions& options);
Option counters_option(SimulatedGpuOptions& options);
Option annotate_option(SimulatedGpuOptions& options);
Option annotate_with_option(SimulatedGpuOptions& options);
Option source_root_option(SimulatedGpuOptions& options);
/// Errors    UsageError if --counters or --annotate is given without a GPU that counts.
void check_counters(const SimulatedGpuOptions& options);

/// What every benchmark has besides its own options.
struct CommonBenchOptions {
  bench::BenchFiles files;
  bool list = false;  ///< name what would be measured, and measure nothing
};

/// The benchmark's own options, then --list, -J and --csv-file.
std::vector<Option> with_common_options(std::vector<Option> own, CommonBenchOptions& common);

/// The number of the GPU that a benchmark uses; nothing on a CPU, and on a simulated GPU.
std::optional<int> gpu_of(const Compute& compute);

/// Why this machine has no usable GPU; empty if it has one.
std::string missing_gpu();

/// "cpu", "cuda" or "simulated h100", whose times are compared with no GPU's.
std::string kind_of(const Compute& compute);

/// Prints a line for each word or number, indented below a title.
template <class Lines = std::initializer_list<std::string_view>>
void print_list(std::string_view title, const Lines& lines) {
  print_text("{}\n", title);
  for (const auto& line : lines) print_text("  {}\n", line);
}

/// "3.1 %": the spread of repetitions for a table.
std::string noise_text(const kernels::bench::Statistics& statistics);

/// Repetitions in seconds as a measurement in microseconds.
bench::BenchMeasurement in_microseconds(bench::MeasurementKey key, const kernels::bench::Statistics& seconds);

/// {"median": ..., "p95": ..., ...}, each value times `unit`.
nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit = 1);

/// "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 0 B, 48 of 64 warps", and local memory if
/// used; without a GPU's resources "sum_kernel<float>: 1 x 1 threads, shared dynamic 0 B".
std::string to_string(const kernels::LaunchReport& launch);

/// {"kernel": ..., "blocks": ..., "threads": ..., "dynamic_shared_bytes": ..., and on a GPU "registers": ...,
/// "local_bytes": ..., "static_shared_bytes": ..., "resident_warps": ..., "most_warps": ...}
nlohmann::json to_json(const kernels::LaunchReport& launch);

}  // namespace gradring::train
