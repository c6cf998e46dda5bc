// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/host_bench.h"

#include <algorithm>

namespace gradring::comm::bench {

std::optional<std::size_t> HostBench::wrong_elements(const Payload& payload) {
  if (collective_ == HostCollective::barrier) return std::nullopt;
  const std::int64_t world = group_.world_size();
  std::vector<std::int64_t> values(payload.elements, group_.rank() + 1);
  group_.all_reduce_on_host(std::span(values));
  std::int64_t wrong = std::ranges::count_if(values, [&](auto sum) { return sum != world * (world + 1) / 2; });
  group_.all_reduce_on_host(std::span(&wrong, 1));
  return static_cast<std::size_t>(wrong);
}

std::vector<double> HostBench::seconds(const Payload& payload, const Repetitions& repetitions) {
  std::vector<std::int64_t> values(payload.elements);
  return seconds_of_calls(
      group_, repetitions, [] {},
      [&] {
        if (collective_ == HostCollective::barrier) return group_.barrier_on_host();
        group_.all_reduce_on_host(std::span(values));
      });
}

}  // namespace gradring::comm::bench
