// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/runtime/device.h"

namespace gradring::train {

/// The key of Checkpoint::about for recorded_cpu_level.
inline constexpr const char* kCpuLevel = "cpu_level";

/// What decides how a CPU rounds: the level of the instruction set ("x86-64-v3"; levels from v3 on have fused multiply-adds), and
/// oneDNN's limit where the user set one ("x86-64-v3, ONEDNN_MAX_CPU_ISA=SSE41"). Empty for a GPU.
std::string recorded_cpu_level(const kernels::Device& device);

/// How to get from level `here` to `wanted`: "set GRADRING_CPU_LEVEL=x86-64-v2" where this build has that level, "unset ..."
/// where only oneDNN's limit differs.
std::string advice_for_cpu_level(const std::string& wanted, const std::string& here);

/// Compares the level that a checkpoint was saved with to that of this run, for runs whose bits must not change.
///
/// Errors    UsageError if both are known and differ: says how to select the checkpoint's level.
void check_cpu_level(const nlohmann::ordered_json& about, const kernels::Device& device,
                     const std::filesystem::path& from);

}  // namespace gradring::train
