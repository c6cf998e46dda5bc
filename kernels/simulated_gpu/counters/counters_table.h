// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"

namespace gradring::simulated_gpu {

/// The header of the table of launches: two lines.
std::string counters_header();
/// A row: "relu_forward_flat_kernel<float>   264   4752   32.0   4.0/4.0 ...", without an end.
std::string counters_row(const LaunchCounts& launch);
/// "integer 40 %, load_store 25 %, ...": what the warps executed, the most first.
std::string instruction_mix(const LaunchCounts& launch);

/// The lines of several launches, each once, with its sums.
std::vector<LineCounts> merged_lines(std::span<const LaunchCounts* const> launches);
/// The lines that cost most: by warp instructions, by sectors and by wavefronts beyond the least; a title before each.
std::string costly_lines(const std::vector<LineCounts>& lines);

/// Named as Nsight Compute names them, where it has such a metric.
nlohmann::json to_json(const LaunchCounts& launch);
/// Those of costly_lines.
nlohmann::json costly_lines_json(const std::vector<LineCounts>& lines);

}  // namespace gradring::simulated_gpu
