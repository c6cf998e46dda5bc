// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "kernels/runtime/device.h"

namespace gradring::train {

/// The key of Checkpoint::about under which cpu_code stands.
inline constexpr const char* kCpuCode = "cpu_code";

/// The level of the instruction set that a CPU computes with ("x86-64-v3"): levels differ in roundings, because those from
/// x86-64-v3 on have fused multiply-adds. Empty for a GPU.
std::string cpu_code(const kernels::Device& device);

/// Compares the level that a checkpoint was made with to that of this run, for runs whose bits must not change.
///
/// Errors    UsageError if both are known and differ: says how to select the checkpoint's level.
void check_cpu_code(const nlohmann::ordered_json& about, const kernels::Device& device,
                    const std::filesystem::path& from);

}  // namespace gradring::train
