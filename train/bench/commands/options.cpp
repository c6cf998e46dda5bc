// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/open_dataset.h"
#include "train/core/config/options.h"
#include "train/core/config/simulated_gpu_option.h"
#include "train/core/setup/named_output.h"
#include "train/options/commands.h"
#include "train/options/parse_value.h"
#include "train/options/usage_error.h"

namespace gradring::train {

std::vector<Option> dataset_options(TrainConfig& config, std::vector<Option> more) {
  const std::vector<Option> first = dataset_options(config);
  more.insert(more.begin(), first.begin(), first.end());
  return more;
}

std::unique_ptr<data::Dataset> open_chosen(const TrainConfig& config, data::Split split) {
  check_image_options(config);
  return data::open_dataset(dataset_spec(config), split);
}

std::vector<Option> with_common_options(std::vector<Option> own, CommonBenchOptions& common) {
  own.push_back(switch_option("list", "list of what would be measured; no measurement", common.list));
  own.push_back(json_file_option(common.files.json));
  own.push_back(new_file_option("csv-file", "FILE", "CSV file for the results", common.files.csv));
  own.push_back(force_option(common.files.replace));
  return own;
}

Option simulate_gpu_option(SimulatedGpuOptions& options) {
  return simulated_gpu_option(
      "card that is simulated instead of using a GPU, with --device cuda: slow, and without times "
      "(default none)",
      options.card);
}

Option simulate_seed_option(SimulatedGpuOptions& options) {
  return value_option("simulate-seed", "N",
                      "seed of the order in which a simulated GPU does what CUDA leaves unordered (default 0)",
                      parse_seed, options.seed);
}

Option counters_option(SimulatedGpuOptions& options) {
  return switch_option("counters",
                       "what each kernel executes, named as Nsight Compute names it, with a bound of its time; needs "
                       "--simulate-gpu",
                       options.counters);
}

Option annotate_option(SimulatedGpuOptions& options) {
  const auto parse_file = [](std::string_view, std::string_view text) { return std::filesystem::path(text); };
  return value_option("annotate", "FILE",
                      "text file for the source of the kernels with the counts of every line; needs --simulate-gpu",
                      parse_file, options.annotation.file);
}

Option annotate_with_option(SimulatedGpuOptions& options) {
  Option option =
      bare_option("annotate-with", "ptx|sass",
                  "below each line that --annotate prints: its PTX, or that and its machine code by nvdisasm");
  option.read = [name = option.name, &annotation = options.annotation](std::string_view text) {
    constexpr std::string_view kWords[] = {"ptx", "sass"};
    annotation.ptx = true;
    annotation.sass = parse_word(name, text, kWords) == "sass";
  };
  return option;
}

Option source_root_option(SimulatedGpuOptions& options) {
  const auto parse_folder = [](std::string_view, std::string_view text) { return std::filesystem::path(text); };
  return value_option("source-root", "DIR", "folder of the sources that --annotate prints (default .)", parse_folder,
                      options.annotation.source_root);
}

void check_counters(const SimulatedGpuOptions& options) {
  if (options.counts() && !is_simulated(options.card))
    throw UsageError(
        "--counters and --annotate need --simulate-gpu, because only a simulated GPU counts what kernels execute: add "
        "--device cuda --simulate-gpu h100, or profile a real GPU with Nsight Compute (gradring bench kernels --ncu)");
  const auto& annotation = options.annotation;
  if (!annotation.is_wanted() && (annotation.ptx || annotation.source_root != bench::AnnotationSpec().source_root))
    throw UsageError("--annotate-with and --source-root need --annotate FILE: add it, or leave them out");
}

std::optional<int> gpu_of(const Compute& compute) {
  const kernels::DeviceId id = compute.device->id();
  return id.kind == kernels::DeviceKind::cuda && !compute.simulator ? std::optional(id.index) : std::nullopt;
}

std::string missing_gpu() {
  try {
    make_compute({.device = "cuda"});
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string kind_of(const Compute& compute) {
  if (compute.simulator) return fmt::format("simulated {}", compute.simulated);
  return compute.device->id().kind == kernels::DeviceKind::cuda ? "cuda" : "cpu";
}

std::string noise_text(const kernels::bench::Statistics& statistics) {
  return fmt::format("{:.1f} %", 100 * statistics.noise());
}

bench::BenchMeasurement in_microseconds(bench::MeasurementKey key, const kernels::bench::Statistics& seconds) {
  bench::BenchMeasurement measurement{.key = std::move(key), .samples = seconds.samples};
  for (double& sample : measurement.samples) sample *= kMicroseconds;
  return measurement;
}

nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit) {
  return {{"count", statistics.count},      {"least", statistics.least * unit},  {"median", statistics.median * unit},
          {"p95", statistics.p95 * unit},   {"p99", statistics.p99 * unit},      {"most", statistics.most * unit},
          {"mean", statistics.mean * unit}, {"spread", statistics.spread * unit}};
}

std::string to_string(const kernels::LaunchReport& launch) {
  const std::string start = fmt::format("{}: {} x {} threads", launch.kernel, launch.blocks, launch.threads);
  if (!launch.resources) return fmt::format("{}, shared dynamic {} B", start, launch.dynamic_shared_bytes);
  const auto& gpu = *launch.resources;
  return fmt::format("{}, {} registers, shared {} + {} B, {} of {} warps{}", start, gpu.registers,
                     gpu.static_shared_bytes, launch.dynamic_shared_bytes, gpu.resident_warps, gpu.most_warps,
                     gpu.local_bytes > 0 ? fmt::format(", {} B local", gpu.local_bytes) : "");
}

nlohmann::json to_json(const kernels::LaunchReport& launch) {
  nlohmann::json json = {{"kernel", launch.kernel},
                         {"blocks", launch.blocks},
                         {"threads", launch.threads},
                         {"dynamic_shared_bytes", launch.dynamic_shared_bytes}};
  if (!launch.resources) return json;
  const auto& gpu = *launch.resources;
  json["registers"] = gpu.registers;
  json["local_bytes"] = gpu.local_bytes;
  json["static_shared_bytes"] = gpu.static_shared_bytes;
  json["resident_warps"] = gpu.resident_warps;
  json["most_warps"] = gpu.most_warps;
  return json;
}

}  // namespace gradring::train
