// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/collective_bench.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace gradring::comm::bench {

std::vector<double> seconds_of_calls(ProcessGroup& group, const Repetitions& repetitions,
                                     const std::function<void()>& prepare, const std::function<void()>& collective) {
  using Clock = std::chrono::steady_clock;
  group.barrier_on_host();
  std::vector<double> mine;
  for (int i = -repetitions.warmups; i < repetitions.iterations; ++i) {
    prepare();
    const auto begin = Clock::now();
    collective();
    if (i >= 0) mine.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return slowest_of_all_ranks(group, mine);
}

std::vector<double> slowest_of_all_ranks(ProcessGroup& group, std::span<const double> mine) {
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(mine));
  std::vector<double> slowest(mine.size());
  std::vector<double> theirs(mine.size());
  for (std::size_t begin = 0; begin < all.size(); begin += mine.size_bytes()) {
    std::memcpy(theirs.data(), all.data() + begin, mine.size_bytes());
    std::ranges::transform(slowest, theirs, slowest.begin(), [](double a, double b) { return std::max(a, b); });
  }
  return slowest;
}

}  // namespace gradring::comm::bench
