// SPDX-License-Identifier: Apache-2.0
#include "comm/bench/all_reduce_bench.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/base/error.h"

namespace gradring::comm::bench {
namespace {

using kernels::DType;

/// Period of the contributions; a prime, so that no shard or chunk equals another.
constexpr std::size_t kPeriod = 251;

void put(float& to, int value) { to = static_cast<float>(value); }
void put(kernels::Half& to, int value) { to = kernels::to_half(static_cast<float>(value)); }
void put(kernels::BFloat16& to, int value) { to = kernels::to_bfloat16(static_cast<float>(value)); }
void put(std::int32_t& to, int value) { to = value; }
void put(std::int64_t& to, int value) { to = value; }

template <class T>
bool equal(const T& found, int value) {
  return found == static_cast<T>(value);
}
bool equal(kernels::Half found, int value) { return to_float(found) == static_cast<float>(value); }
bool equal(kernels::BFloat16 found, int value) { return to_float(found) == static_cast<float>(value); }

/// Calls visit(T{}) with the host type of `dtype`.
template <class Visit>
auto with_type(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::f32: return visit(float{});
    case DType::f16: return visit(kernels::Half{});
    case DType::bf16: return visit(kernels::BFloat16{});
    case DType::i32: return visit(std::int32_t{});
    case DType::i64: return visit(std::int64_t{});
    case DType::u8: break;
  }
  throw InvalidArgument("cannot sum dtype " + std::string(name_of(dtype)) + ": use f32, f16, bf16, i32 or i64");
}

}  // namespace

int ExactSums::contribution(int rank, std::size_t element) const {
  const int largest = std::clamp(256 / world_size, 1, 15);
  const std::size_t hash = (element % kPeriod) * 7 + static_cast<std::size_t>(rank) * 13;
  return static_cast<int>(hash % static_cast<std::size_t>(2 * largest + 1)) - largest;
}

int ExactSums::sum(std::size_t element) const {
  int total = 0;
  for (int rank = 0; rank < world_size; ++rank) total += contribution(rank, element);
  return total;
}

void ExactSums::fill(std::byte* array, std::size_t elements, DType dtype, int rank) const {
  with_type(dtype, [&](auto type) {
    auto* const values = reinterpret_cast<decltype(type)*>(array);
    for (std::size_t i = 0; i < elements; ++i) put(values[i], contribution(rank, i));
  });
}

std::size_t ExactSums::count_wrong(const std::byte* array, std::size_t elements, DType dtype) const {
  std::vector<int> sums;
  for (std::size_t i = 0; i < kPeriod; ++i) sums.push_back(sum(i));
  return with_type(dtype, [&](auto type) {
    const auto* const values = reinterpret_cast<const decltype(type)*>(array);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < elements; ++i) wrong += equal(values[i], sums[i % kPeriod]) ? 0 : 1;
    return wrong;
  });
}

AllReduceBench::AllReduceBench(ProcessGroup& group, kernels::Stream& stream, std::size_t largest_bytes,
                               AllReduceAlgorithm algorithm, kernels::Device* gpu)
    : group_(group), stream_(stream), segment_(group.allocate(largest_bytes)), algorithm_(algorithm) {
  if (gpu != nullptr) staging_ = gpu->allocate(largest_bytes, kernels::MemoryKind::pinned);
}

AllReduceBench::~AllReduceBench() = default;

void AllReduceBench::synchronize() { stream_.synchronize(Deadline::after(group_.timeout())); }

void AllReduceBench::all_reduce(const Payload& payload) {
  group_.all_reduce({.segment = segment_.get(), .slice = {0, payload.elements}, .dtype = payload.dtype}, stream_,
                    algorithm_);
  synchronize();
}

std::size_t AllReduceBench::wrong_elements(const Payload& payload) {
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
  using Clock = std::chrono::steady_clock;
  const auto write = [&] {  // repeated sums would overflow
    stream_.enqueue_zero(segment_->data(), payload.bytes());
    synchronize();
  };
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
