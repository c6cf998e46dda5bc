// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/recorded_cpu_level.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "kernels/runtime/cpu_level.h"
#include "nn/backend/cpu/onednn.h"
#include "train/config/usage_error.h"

namespace gradring::train {

std::string recorded_cpu_level(const kernels::Device& device) {
  if (device.id().kind != kernels::DeviceKind::cpu) return {};
  std::string level(kernels::cpu_level_name(kernels::cpu_level()));
  for (const char* variable : nn::kOneDnnLimits)
    if (const char* limit = std::getenv(variable); limit && *limit) level += fmt::format(", {}={}", variable, limit);
  return level;
}

std::string advice_for_cpu_level(const std::string& wanted, const std::string& here) {
  if (here.starts_with(wanted + ", ")) return fmt::format("unset {}", fmt::join(nn::kOneDnnLimits, " and "));
  const auto levels = kernels::cpu_levels();
  const bool is_here =
      std::ranges::any_of(levels, [&](kernels::CpuLevel level) { return kernels::cpu_level_name(level) == wanted; });
  if (is_here) return fmt::format("set {}={}", kernels::kCpuLevelVariable, wanted);
  return fmt::format("use the build and the environment that ran {}", wanted);
}

void check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device,
                     const std::filesystem::path& from) {
  const auto saved = about.find(kCpuLevel);
  const std::string here = recorded_cpu_level(device);
  if (saved == about.end() || !saved->is_string() || here.empty()) return;
  const auto there = saved->get<std::string>();
  if (there.empty() || there == here) return;
  throw UsageError(
      fmt::format("checkpoint {} was saved with {} code; this run uses {}, which rounds differently; {}, or resume "
                  "without --reproducible",
                  from.string(), there, here, advice_for_cpu_level(there, here)));
}

}  // namespace gradring::train
