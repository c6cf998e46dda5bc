// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "kernels/simulated_gpu/machine/findings.h"

namespace gradring::simulated_gpu {

/// The launches of kernels whose name has a part that matches `kernel`, a regular expression; all if it is empty.
std::vector<const LaunchCounts*> counted_launches(std::span<const CountedWork> work, const std::string& kernel);
/// A table with a row for each launch, equal ones once, and the lines that cost most.
std::string counters_text(std::span<const LaunchCounts* const> launches);
/// FindingLog::json() with the member "launches".
std::string report_json(const FindingLog& findings, std::span<const LaunchCounts* const> launches);

}  // namespace gradring::simulated_gpu
