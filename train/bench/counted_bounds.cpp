// SPDX-License-Identifier: Apache-2.0
#include "train/bench/counted_bounds.h"

#include <fmt/format.h>

#include <initializer_list>
#include <tuple>

#include "kernels/simulated_gpu/counters/named_counts.h"
#include "train/options/usage_error.h"

namespace gradring::train::bench {
namespace {

namespace kb = kernels::bench;

MeasurementKey key_of(const std::string& name, const std::string& shape, const std::string& dtype,
                      const std::string& variant, std::string_view counter) {
  return {{"case", name}, {"shape", shape}, {"dtype", dtype}, {"variant", variant}, {"counter", std::string(counter)}};
}

}  // namespace

CountedBounds::CountedBounds(const BenchResult& result) {
  for (const BenchMeasurement& each : result.measurements) {
    const std::string counter = value_of(each.key, "counter");
    if (counter != simulated_gpu::kBound && counter != simulated_gpu::kBoundOfInstructions) continue;
    microseconds_[key_of(value_of(each.key, "case"), value_of(each.key, "shape"), value_of(each.key, "dtype"),
                         value_of(each.key, "variant"), counter)] = each.samples.front();
  }
  if (microseconds_.empty())
    throw UsageError(fmt::format(
        "--bounds {} has no bounds: name a file of gradring bench kernels --device cuda --simulate-gpu CARD "
        "--counters -J FILE",
        result.path.string()));
}

std::string CountedBounds::contradiction(const kb::KernelCase& c, const kb::Measured& measured) const {
  for (const auto& [cache, seconds, counter] :
       {std::tuple("hot", measured.hot.least, simulated_gpu::kBoundOfInstructions),
        std::tuple("flushed", measured.flushed.least, simulated_gpu::kBound)}) {
    const auto found =
        microseconds_.find(key_of(c.name, c.shape, std::string(name_of(c.dtype)), measured.name, counter));
    if (found == microseconds_.end() || seconds * kMicroseconds >= kTolerance * found->second) continue;
    return fmt::format(
        "{:.2f} us {} is below the {} of {:.2f} us that was counted: it did not do its work, or the bound "
        "is of another card",
        seconds * kMicroseconds, cache, counter, found->second);
  }
  return "";
}

}  // namespace gradring::train::bench
