// SPDX-License-Identifier: Apache-2.0
#include "train/bench/counted_launches.h"

#include <string>

#include "kernels/simulated_gpu/counters/named_counts.h"

namespace gradring::train::bench {

std::vector<BenchMeasurement> counter_measurements(const MeasurementKey& key,
                                                   std::span<const simulated_gpu::LaunchCounts* const> launches) {
  std::vector<BenchMeasurement> measurements;
  for (const simulated_gpu::NamedCount& count : simulated_gpu::named_counts(launches))
    measurements.push_back({.key = joined(key, {{"counter", std::string(count.name)}}),
                            .unit = std::string(count.unit),
                            .samples = {count.value},
                            .better = count.is_cost ? Better::lower : Better::neither,
                            .is_exact = true});
  return measurements;
}

}  // namespace gradring::train::bench
