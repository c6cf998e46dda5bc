// SPDX-License-Identifier: Apache-2.0
#include "tests/comm/support/exact_cases.h"

#include <fmt/format.h>

#include <bit>
#include <stdexcept>
#include <vector>

#include "kernels/host/host_device.h"
#include "kernels/runtime/device.h"
#include "tests/comm/support/patterns.h"
#include "tests/comm/support/ranks.h"

namespace gradring::tests {
namespace {

using kernels::DType;

constexpr std::size_t kSizes[] = {0, 1, 2, 3, 31, 32, 33, 1023, (1 << 16) + 1};
constexpr std::size_t kOffsets[] = {0, 5};
constexpr std::size_t kMargin = 8;  // elements after the range, which must not change
constexpr DType kSummed[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
constexpr float kUntouched = 77;
/// The ring, and the transport's preferred algorithm.
constexpr comm::AllReduceAlgorithm kAlgorithms[] = {comm::AllReduceAlgorithm::ring,
                                                    comm::AllReduceAlgorithm::automatic};

/// A range of a segment filled with whole numbers, guard elements around it, and a stream.
class Bench {
 public:
  explicit Bench(comm::ProcessGroup& group)
      : group_(group), stream_(device_.make_stream(kernels::StreamMode::in_place)), segment_(group.allocate(room())) {}

  comm::SegmentRange fill(DType dtype, std::size_t offset, std::size_t elements) {
    range_ = {.segment = segment_.get(), .slice = {offset, elements}, .dtype = dtype};
    for (std::size_t i = 0; i < offset + elements + kMargin; ++i) store(segment_->data(), dtype, i, kUntouched);
    for (std::size_t i = 0; i < elements; ++i) put(i, static_cast<float>(whole_number(group_.rank(), i)));
    return range_;
  }
  void put(std::size_t i, float value) { store(segment_->data(), range_.dtype, range_.slice.offset + i, value); }

  kernels::Stream& stream() { return *stream_; }

  void expect(const comm::Slice& slice, const std::string& what,
              const std::function<int(std::size_t)>& expected) const {
    for (std::size_t i = slice.offset; i < slice.offset + slice.elements; ++i) {
      const double found = load(segment_->data(), range_.dtype, range_.slice.offset + i);
      if (found == expected(i)) continue;
      throw std::runtime_error(fmt::format("{} of {} {} at offset {}: element {} is {}, not {}", what,
                                           range_.slice.elements, name_of(range_.dtype), range_.slice.offset, i, found,
                                           expected(i)));
    }
    const auto untouched = [&](std::size_t at) { return load(segment_->data(), range_.dtype, at) == kUntouched; };
    const std::size_t end = range_.slice.offset + range_.slice.elements;
    for (std::size_t i = 0; i < range_.slice.offset; ++i) require(untouched(i), "a write before the range");
    for (std::size_t i = end; i < end + kMargin; ++i) require(untouched(i), "a write after the range");
  }

 private:
  static std::size_t room() { return (kSizes[std::size(kSizes) - 1] + 5 + kMargin) * sizeof(std::int64_t); }

  comm::ProcessGroup& group_;
  kernels::HostDevice device_;
  std::unique_ptr<kernels::Stream> stream_;
  std::unique_ptr<comm::Segment> segment_;
  comm::SegmentRange range_;
};

}  // namespace

void check_all_reduce(comm::ProcessGroup& group) {
  Bench bench(group);
  const auto sum = [&](std::size_t i) { return sum_of_whole_numbers(group.world_size(), i); };
  for (const comm::AllReduceAlgorithm algorithm : kAlgorithms)
    for (const DType dtype : kSummed)
      for (const std::size_t elements : kSizes)
        for (const std::size_t offset : kOffsets) {
          group.all_reduce(bench.fill(dtype, offset, elements), bench.stream(), algorithm);
          bench.expect({0, elements}, "all_reduce", sum);
        }
}

void check_reduce_scatter_and_all_gather(comm::ProcessGroup& group) {
  Bench bench(group);
  for (const DType dtype : kSummed)
    for (const std::size_t elements : kSizes) {
      const comm::SegmentRange range = bench.fill(dtype, 5, elements);
      const auto sum = [&](std::size_t i) { return sum_of_whole_numbers(group.world_size(), i); };
      group.reduce_scatter(range, bench.stream());
      bench.expect(group.shard(elements, group.rank()), "reduce_scatter", sum);
      group.all_gather(range, bench.stream());
      bench.expect({0, elements}, "all_gather", sum);
    }
}

void check_broadcast(comm::ProcessGroup& group) {
  Bench bench(group);
  for (int root = 0; root < group.world_size(); ++root)
    for (const std::size_t elements : kSizes) {
      const comm::SegmentRange range = bench.fill(DType::u8, 5, elements);
      for (std::size_t i = 0; i < elements; ++i) bench.put(i, static_cast<float>(whole_number(group.rank(), i) + 15));
      group.broadcast(range, root, bench.stream());
      bench.expect({0, elements}, "broadcast", [&](std::size_t i) { return whole_number(root, i) + 15; });
    }
}

void check_host_helpers(comm::ProcessGroup& group) {
  const int world = group.world_size();
  std::vector<double> values = {static_cast<double>(group.rank()), 0.5};
  group.all_reduce_on_host(std::span(values));
  require(values[0] == 0.5 * world * (world - 1) && values[1] == 0.5 * world, "all_reduce_on_host of doubles is wrong");

  std::vector<std::int64_t> counts(20'000, 1ll << 40);  // more than the staging buffer holds
  group.all_reduce_on_host(std::span(counts));
  for (const std::int64_t count : counts)
    require(count == (1ll << 40) * world, "all_reduce_on_host of counts is wrong");

  for (int root = 0; root < world; ++root)
    for (const std::size_t length : {0, 1, 100, 70'000, 200'001}) {
      const std::string text(length, static_cast<char>('a' + root));
      require(group.broadcast_on_host(group.rank() == root ? text : "mine", root) == text,
              "broadcast_on_host is wrong");
    }
  const auto mine = static_cast<std::byte>(group.rank());
  const std::vector<std::byte> all = group.all_gather_on_host(std::span(&mine, 1));
  for (int rank = 0; rank < world; ++rank)
    require(all[static_cast<std::size_t>(rank)] == static_cast<std::byte>(rank), "all_gather_on_host is wrong");
  group.barrier_on_host();
}

void check_order_of_sums(comm::ProcessGroup& group) {
  constexpr std::uint64_t kSeed = 20251;
  constexpr std::size_t kElements = 150'001;  // several chunks per shard
  const int world = group.world_size();
  kernels::HostDevice device;
  const auto stream = device.make_stream(kernels::StreamMode::in_place);
  const auto segment = group.allocate(kElements * sizeof(float));
  const auto expected = [&](int owner, std::size_t i) {
    float sum = rough_number(kSeed, (owner + 1) % world, i);
    for (int hop = 2; hop <= world; ++hop) sum += rough_number(kSeed, (owner + hop) % world, i);
    return std::bit_cast<std::uint32_t>(sum);
  };
  for (const comm::AllReduceAlgorithm algorithm : kAlgorithms) {
    for (std::size_t i = 0; i < kElements; ++i) segment->as<float>()[i] = rough_number(kSeed, group.rank(), i);
    group.all_reduce({.segment = segment.get(), .slice = {0, kElements}}, *stream, algorithm);
    for (int owner = 0; owner < world; ++owner) {
      const comm::Slice shard = group.shard(kElements, owner);
      for (std::size_t i = shard.offset; i < shard.offset + shard.elements; ++i)
        if (std::bit_cast<std::uint32_t>(segment->as<float>()[i]) != expected(owner, i))
          throw std::runtime_error(fmt::format("seed {}: element {} is not the sum in the documented order", kSeed, i));
    }
  }
}

}  // namespace gradring::tests
