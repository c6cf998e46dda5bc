// SPDX-License-Identifier: Apache-2.0
#include "train/records/trace/rank_clock.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>
#include <vector>

namespace gradring::train {
namespace {

constexpr int kExchanges = 32;

/// Rank 0's value. Returns when the values of all ranks have arrived here.
std::int64_t exchange(comm::ProcessGroup& group, std::int64_t mine) {
  const std::vector<std::byte> all = group.all_gather_on_host(std::as_bytes(std::span(&mine, 1)));
  std::int64_t first = 0;
  std::memcpy(&first, all.data(), sizeof first);
  return first;
}

}  // namespace

std::string id_of_this_clock() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  return id;
}

RankClock compare_clocks(comm::ProcessGroup& group, const std::string& clock_id,
                         const std::function<std::int64_t()>& now) {
  const std::string of_rank_0 = group.broadcast_on_host(clock_id, 0);
  const bool shared = group.rank() == 0 || (!clock_id.empty() && clock_id == of_rank_0);
  std::int64_t others = shared ? 0 : 1;
  group.all_reduce_on_host(std::span(&others, 1));
  if (others == 0) return {};

  std::int64_t least = std::numeric_limits<std::int64_t>::min() / 4;
  std::int64_t most = std::numeric_limits<std::int64_t>::max() / 4;
  for (int i = 0; i < kExchanges; ++i) {
    group.barrier_on_host();
    const std::int64_t sent = now();
    const std::int64_t sent_by_0 = exchange(group, sent);
    const std::int64_t arrived = now();
    const std::int64_t arrived_at_0 = exchange(group, arrived);
    least = std::max(least, sent_by_0 - arrived);
    most = std::min(most, arrived_at_0 - sent);
  }
  if (shared) return {};
  return {.offset_ns = least + (most - least) / 2, .accuracy_ns = std::max<std::int64_t>(1, (most - least + 1) / 2)};
}

}  // namespace gradring::train
