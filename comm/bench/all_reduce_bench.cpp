// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/all_reduce_bench.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/base/error.h"
#include "kernels/lib/reference.h"

namespace gradring::comm::bench {
namespace {

using kernels::lib::read_values;
using kernels::lib::write_values;

/// Period of the contributions; a prime, so that no shard or chunk equals another.
constexpr std::size_t kPeriod = 251;

int contribution(int world_size, int rank, std::size_t element) {
  const int largest = std::clamp(256 / world_size, 1, 15);
  const std::size_t hash = element * 7 + static_cast<std::size_t>(rank) * 13;
  return static_cast<int>(hash % static_cast<std::size_t>(2 * largest + 1)) - largest;
}

/// Calls visit(first, count) for each period of an array; the last one may be shorter.
template <class Visit>
void for_each_period(std::size_t elements, const Visit& visit) {
  for (std::size_t first = 0; first < elements; first += kPeriod) visit(first, std::min(kPeriod, elements - first));
}

}  // namespace

void ExactSums::fill(std::byte* array, std::size_t elements, kernels::DType dtype, int rank) const {
  if (dtype == kernels::DType::u8) throw InvalidArgument("cannot sum dtype u8: use f32, f16, bf16, i32 or i64");
  std::vector<double> period;
  for (std::size_t i = 0; i < kPeriod; ++i) period.push_back(contribution(world_size, rank, i));
  for_each_period(elements, [&](std::size_t first, std::size_t count) {
    write_values(dtype, array + first * size_of(dtype), std::span(period).first(count));
  });
}

std::size_t ExactSums::count_wrong(const std::byte* array, std::size_t elements, kernels::DType dtype) const {
  std::vector<double> sums(kPeriod);
  for (std::size_t i = 0; i < kPeriod; ++i)
    for (int rank = 0; rank < world_size; ++rank) sums[i] += contribution(world_size, rank, i);
  std::size_t wrong = 0;
  for_each_period(elements, [&](std::size_t first, std::size_t count) {
    const std::vector<double> found = read_values(dtype, array + first * size_of(dtype), count);
    for (std::size_t i = 0; i < count; ++i) wrong += found[i] == sums[i] ? 0 : 1;
  });
  return wrong;
}

AllReduceBench::AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                               AllReduceAlgorithm algorithm, kernels::Device* gpu)
    : group_(group), stream_(stream), segment_(group.allocate(largest_bytes)), algorithm_(algorithm) {
  if (gpu != nullptr) staging_ = gpu->allocate(largest_bytes, kernels::MemoryKind::pinned);
}

void AllReduceBench::synchronize() { stream_.synchronize(Deadline::after(group_.timeout())); }

void AllReduceBench::all_reduce(const Payload& payload) {
  group_.all_reduce({.segment = segment_.get(), .slice = {0, payload.elements}, .dtype = payload.dtype}, stream_,
                    algorithm_);
  synchronize();
}

std::optional<std::size_t> AllReduceBench::wrong_elements(const Payload& payload) {
  const ExactSums sums{.world_size = group_.world_size()};
  const bool staged = staging_.size() > 0;
  sums.fill(host_data(), payload.elements, payload.dtype, group_.rank());
  if (staged) stream_.enqueue_copy(segment_->data(), host_data(), payload.bytes());
  all_reduce(payload);
  if (staged) stream_.enqueue_copy(host_data(), segment_->data(), payload.bytes());
  synchronize();
  auto wrong = static_cast<std::int64_t>(sums.count_wrong(host_data(), payload.elements, payload.dtype));
  group_.all_reduce_on_host(std::span(&wrong, 1));
  return static_cast<std::size_t>(wrong);
}

std::vector<double> AllReduceBench::seconds(const Payload& payload, const Repetitions& repetitions) {
  const auto write = [&] {  // repeated sums would overflow
    stream_.enqueue_zero(segment_->data(), payload.bytes());
    synchronize();
  };
  write();
  return seconds_of_calls(
      group_, repetitions,
      [&] {
        if (repetitions.fresh) write();
      },
      [&] { all_reduce(payload); });
}

double algorithm_bandwidth(std::size_t bytes, double seconds) { return static_cast<double>(bytes) / seconds; }

double bus_bandwidth(std::size_t bytes, double seconds, int world_size) {
  return algorithm_bandwidth(bytes, seconds) * 2 * (world_size - 1) / world_size;
}

}  // namespace gradring::comm::bench
