// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "kernels/runtime/launch_report.h"

namespace gradring::train {

/// "sum_kernel<float>: 264 x 256 threads, 40 registers, shared 1024 + 0 B, 48 of 64 warps", and what lies in local memory, if
/// anything does; without a GPU's resources "sum_kernel<float>: 1 x 1 threads, shared dynamic 0 B".
std::string to_string(const kernels::LaunchReport& launch);

/// {"kernel": ..., "blocks": ..., "threads": ..., "dynamic_shared_bytes": ..., and on a GPU "registers": ...,
/// "local_bytes": ..., "static_shared_bytes": ..., "resident_warps": ..., "most_warps": ...}
nlohmann::json to_json(const kernels::LaunchReport& launch);

}  // namespace gradring::train
