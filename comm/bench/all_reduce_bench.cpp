// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/all_reduce_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "comm/bench/exact_sums.h"

namespace gradring::comm::bench {

AllReduceBench::AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                               AllReduceAlgorithm algorithm)
    : group_(group), stream_(stream), segment_(group.allocate(largest_bytes)), algorithm_(algorithm) {}

AllReduceBench::~AllReduceBench() = default;

void AllReduceBench::all_reduce(const Payload& payload) {
  group_.all_reduce({.segment = segment_.get(), .slice = {0, payload.elements}, .dtype = payload.dtype}, stream_,
                    algorithm_);
  stream_.synchronize(Deadline::after(group_.timeout()));
}

std::size_t AllReduceBench::wrong_elements(const Payload& payload) {
  const ExactSums sums{.world_size = group_.world_size()};
  sums.fill(segment_->data(), payload.elements, payload.dtype, group_.rank());
  all_reduce(payload);
  auto wrong = static_cast<std::int64_t>(sums.count_wrong(segment_->data(), payload.elements, payload.dtype));
  group_.all_reduce_on_host(std::span(&wrong, 1));
  return static_cast<std::size_t>(wrong);
}

std::vector<double> AllReduceBench::seconds(const Payload& payload, const Repetitions& repetitions) {
  using Clock = std::chrono::steady_clock;
  const auto write = [&] { std::memset(segment_->data(), 0, payload.bytes()); };  // repeated sums would overflow
  write();
  group_.barrier_on_host();
  std::vector<double> mine;
  for (int i = -repetitions.warmups; i < repetitions.iterations; ++i) {
    if (repetitions.fresh) write();
    const auto begin = Clock::now();
    all_reduce(payload);
    if (i >= 0) mine.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  return slowest_of_all_ranks(group_, mine);
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

double algorithm_bandwidth(std::size_t bytes, double seconds) { return static_cast<double>(bytes) / seconds; }

double bus_bandwidth(std::size_t bytes, double seconds, int world_size) {
  return algorithm_bandwidth(bytes, seconds) * 2 * (world_size - 1) / world_size;
}

}  // namespace gradring::comm::bench
