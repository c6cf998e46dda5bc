// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/rank_times.h"

#include <algorithm>

namespace gradring::train {
namespace {

constexpr std::size_t kNumbers = 5;  // of a rank

}  // namespace

void RankTimes::add(const StepRecord& record) {
  const auto whole = [](std::chrono::duration<double> time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time);
  };
  ++steps_;
  total_ += whole(record.duration);
  data_wait_ += whole(record.data_wait);
  exposed_communication_ += whole(record.exposed_communication);
}

void RankTimes::append_to(std::vector<std::int64_t>& sums, const comm::ProcessGroup& group,
                          std::size_t memory_bytes) const {
  const std::size_t mine = sums.size() + kNumbers * static_cast<std::size_t>(group.rank());
  sums.resize(sums.size() + kNumbers * static_cast<std::size_t>(group.world_size()));
  std::ranges::copy(
      std::to_array<std::int64_t>({steps_, total_.count(), data_wait_.count(), exposed_communication_.count(),
                                   static_cast<std::int64_t>(memory_bytes)}),
      sums.begin() + static_cast<std::ptrdiff_t>(mine));
}

RanksRecord RankTimes::take(std::span<const std::int64_t> sums, std::int64_t step) {
  RanksRecord record{.step = step, .steps = steps_};
  for (; !sums.empty(); sums = sums.subspan(kNumbers)) {
    const auto steps = static_cast<double>(std::max<std::int64_t>(1, sums[0]));
    const auto mean = [&](std::size_t number) { return 1e-9 * static_cast<double>(sums[number]) / steps; };
    record.seconds.push_back(mean(1));
    record.data_wait.push_back(mean(2));
    record.exposed_communication.push_back(mean(3));
    record.memory.push_back(static_cast<double>(sums[4]));
  }
  *this = {};
  return record;
}

}  // namespace gradring::train
