// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/cpu_code.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kernels/runtime/cpu_level.h"
#include "train/config/usage_error.h"

namespace gradring::train {

std::string cpu_code(const kernels::Device& device) {
  if (device.id().kind != kernels::DeviceKind::cpu) return {};
  return std::string(kernels::cpu_level_name(kernels::cpu_level()));
}

void check_cpu_code(const nlohmann::ordered_json& about, const kernels::Device& device,
                    const std::filesystem::path& from) {
  const auto saved = about.find(kCpuCode);
  const std::string here = cpu_code(device);
  if (saved == about.end() || !saved->is_string() || here.empty()) return;
  const auto there = saved->get<std::string>();
  if (there.empty() || there == here) return;
  throw UsageError(
      fmt::format("{} was computed with code for {}, but this run uses code for {}, which rounds differently, and "
                  "--reproducible forbids that: set {}={}, or resume without --reproducible",
                  from.string(), there, here, kernels::kCpuLevelVariable, there));
}

}  // namespace gradring::train
