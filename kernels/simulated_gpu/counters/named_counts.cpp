// SPDX-License-Identifier: Apache-2.0
#include "kernels/simulated_gpu/counters/named_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace gradring::simulated_gpu {
namespace {

class Launches {
 public:
  explicit Launches(std::span<const LaunchCounts* const> all) : all_(all) {}

  template <class CountOf>
  double sum(const CountOf& count_of) const {
    double total = 0;
    for (const LaunchCounts* launch : all_) total += static_cast<double>(std::invoke(count_of, *launch));
    return total;
  }
  template <class CountOf>
  double most(const CountOf& count_of) const {
    double found = 0;
    for (const LaunchCounts* launch : all_)
      found = std::max(found, static_cast<double>(std::invoke(count_of, *launch)));
    return found;
  }
  template <class CountOf>
  double fewest(const CountOf& count_of) const {
    double found = std::numeric_limits<double>::max();
    for (const LaunchCounts* launch : all_)
      found = std::min(found, static_cast<double>(std::invoke(count_of, *launch)));
    return all_.empty() ? 0 : found;
  }
  double sum_of(MemoryCounts LaunchCounts::*memory, std::uint64_t MemoryCounts::*count) const {
    return sum([=](const LaunchCounts& launch) { return launch.*memory.*count; });
  }

 private:
  std::span<const LaunchCounts* const> all_;
};

int registers(const LaunchCounts& launch) { return launch.resources ? launch.resources->registers : 0; }

std::size_t spill_bytes(const LaunchCounts& launch) {
  return launch.resources ? launch.resources->spill_store_bytes + launch.resources->spill_load_bytes : 0;
}

}  // namespace

std::vector<NamedCount> named_counts(std::span<const LaunchCounts* const> launches) {
  const Launches all(launches);
  using L = LaunchCounts;
  using M = MemoryCounts;
  return {
      {"launches", "launches", static_cast<double>(launches.size())},
      {"blocks", "blocks", all.sum(&L::blocks)},
      {"warp instructions", "instructions", all.sum(&L::all_warp_instructions), true},
      {"machine instructions", "instructions", std::round(all.sum(&L::all_machine_instructions))},
      {"load requests", "requests", all.sum_of(&L::loads, &M::requests)},
      {"load sectors", "sectors", all.sum_of(&L::loads, &M::sectors)},
      {"ideal load sectors", "sectors", all.sum_of(&L::loads, &M::least_sectors)},
      {"store requests", "requests", all.sum_of(&L::stores, &M::requests)},
      {"store sectors", "sectors", all.sum_of(&L::stores, &M::sectors)},
      {"ideal store sectors", "sectors", all.sum_of(&L::stores, &M::least_sectors)},
      {"atomic requests", "requests", all.sum_of(&L::atomics, &M::requests)},
      {"atomic sectors", "sectors", all.sum_of(&L::atomics, &M::sectors)},
      {"bytes of tensor copies", "bytes", all.sum(&L::tensor_copy_bytes)},
      {"DRAM bytes read", "bytes", all.sum(&L::distinct_read_bytes)},
      {"DRAM bytes written", "bytes", all.sum(&L::distinct_written_bytes)},
      {"shared wavefronts", "wavefronts", all.sum(&L::wavefronts)},
      {"ideal shared wavefronts", "wavefronts", all.sum(&L::least_wavefronts)},
      {"barriers", "barriers", all.sum(&L::barriers)},
      {"tensor operations", "operations", all.sum(&L::tensor_flops)},
      {"registers", "registers", all.most(registers)},
      {"spilled bytes", "bytes", all.most(spill_bytes)},
      {"shared memory of a block", "bytes",
       all.most([](const L& launch) { return launch.static_shared_bytes + launch.dynamic_shared_bytes; })},
      {"resident warps", "warps", all.fewest(&L::grid_warps)},
      {kBound, "us", all.sum([](const L& launch) { return launch.bound.microseconds(); }), true},
      {kBoundOfInstructions, "us", all.sum([](const L& launch) {
         return 1e6 * std::max(launch.bound.issue_seconds, launch.bound.tensor_seconds);
       })},
  };
}

}  // namespace gradring::simulated_gpu
