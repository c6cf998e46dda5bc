// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "kernels/simulated_gpu/counters/launch_counts.h"
#include "train/bench/result_file.h"

namespace gradring::train::bench {

/// Every counter of these launches (simulated_gpu::named_counts) as a measurement without noise. `key`: what launched
/// them, to which {"counter", its name} is added.
std::vector<BenchMeasurement> counter_measurements(const MeasurementKey& key,
                                                   std::span<const simulated_gpu::LaunchCounts* const> launches);

}  // namespace gradring::train::bench
