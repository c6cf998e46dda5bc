// SPDX-License-Identifier: Apache-2.0
#include "train/bench/rank_processors.h"

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "train/bench/machine_state.h"

namespace gradring::train::bench {

double processor_seconds_of_others(comm::ProcessGroup& group, double begin) {
  const double mine = processor_seconds_of_process() - begin;
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(&mine, 1)));
  std::vector<double> seconds(all.size() / sizeof mine);
  std::memcpy(seconds.data(), all.data(), all.size());
  double others = -mine;
  for (const double each : seconds) others += each;
  return others;
}

}  // namespace gradring::train::bench
