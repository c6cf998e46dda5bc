// SPDX-License-Identifier: Apache-2.0
#include "train/bench/commands/options.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "data/datasets/open_dataset.h"
#include "train/options/environment_variable.h"
#include "train/report/line_file.h"

namespace gradring::train {

std::vector<Option> dataset_options(std::string& dataset, std::string& data_dir, std::vector<Option> more) {
  data_dir = system_variable("GRADRING_DATA_DIR").value_or("");
  more.insert(
      more.begin(),
      {choice_option("dataset", data::dataset_names(), fmt::format("dataset (default {})", dataset), dataset),
       text_option("data-dir", "DIR", "folder with the files of the dataset (default GRADRING_DATA_DIR)", data_dir)});
  return more;
}

void write_bench_file(const std::string& path, const std::string& benchmark,
                      const kernels::bench::Provenance& provenance, const nlohmann::json& results) {
  if (path.empty()) return;
  nlohmann::ordered_json file = {{"benchmark", benchmark},
                                 {"machine", provenance.machine},
                                 {"date", provenance.date},
                                 {"commit", provenance.commit}};
  for (const auto& [name, value] : results.items()) file[name] = value;
  write_named_file(path, file.dump(2) + "\n");
}

nlohmann::json to_json(const kernels::bench::Statistics& statistics, double unit) {
  return {{"count", statistics.count},     {"least", statistics.least * unit}, {"median", statistics.median * unit},
          {"p95", statistics.p95 * unit},  {"p99", statistics.p99 * unit},     {"most", statistics.most * unit},
          {"mean", statistics.mean * unit}};
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
