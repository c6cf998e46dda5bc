// SPDX-License-Identifier: Apache-2.0
#include "train/cli/launch_report_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace gradring::train {

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
