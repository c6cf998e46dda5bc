// SPDX-License-Identifier: Apache-2.0
#include "comm/process_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "comm/collectives/collective.h"
#include "comm/collectives/ring.h"
#include "comm/collectives/schedules.h"
#include "comm/transport/partition.h"
#include "comm/transport/sum.h"
#include "kernels/runtime/error.h"

namespace gradring::comm {

/// Collectives on host values (flags, counts, texts). They run in the caller, through a small staging buffer.
///
/// Threads   one thread at a time.
class HostChannel {
 public:
  /// Blocks until all ranks have joined.
  HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout);

  /// Every rank's bytes in rank order; the length is equal on all ranks.
  std::vector<std::byte> all_gather(std::span<const std::byte> mine);
  /// Copies the root's bytes to all ranks; the length is equal on all ranks.
  void broadcast(std::span<std::byte> bytes, int root);
  void barrier();

 private:
  void run(const Schedule& schedule, std::size_t bytes, int root);

  std::unique_ptr<Transport> transport_;
  std::chrono::nanoseconds timeout_;
  std::unique_ptr<Segment> staging_;
  std::uint64_t collectives_ = 0;
};

namespace {

/// Holds all flags and counts of an epoch, and one byte of each of 65,536 ranks.
constexpr std::size_t kStagingBytes = 64 * 1024;

void check_range(const SegmentRange& range, const Schedule& schedule) {
  const std::size_t room = range.segment ? range.segment->size() / size_of(range.dtype) : 0;
  check(range.slice.offset <= room && range.slice.elements <= room - range.slice.offset, [&] {
    return fmt::format("{} exceeds its segment: found {} {} at element {}, the segment holds {} elements",
                       schedule.operation, range.slice.elements, name_of(range.dtype), range.slice.offset, room);
  });
  check(!schedule.sums || has_sum(range.dtype), [&] {
    return fmt::format("{} does not support dtype {}: use f32, f16, bf16, i32 or i64", schedule.operation,
                       name_of(range.dtype));
  });
}

/// Collectives of one group on two streams at once would mix up their messages.
class ExclusiveUse {
 public:
  explicit ExclusiveUse(std::atomic<bool>& flag) : flag_(flag) {
    check(!flag_.exchange(true),
          "collectives of one group run on two streams at the same time: enqueue them on one stream");
  }
  ~ExclusiveUse() { flag_.store(false); }

 private:
  std::atomic<bool>& flag_;
};

template <class T>
void sum_on_host(HostChannel& channel, std::span<T> values) {
  const std::vector<std::byte> all = channel.all_gather(std::as_bytes(values));
  std::vector<T> part(values.size());
  for (std::size_t begin = 0; begin < all.size(); begin += values.size_bytes()) {
    std::memcpy(part.data(), all.data() + begin, values.size_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = begin == 0 ? part[i] : values[i] + part[i];
  }
}

}  // namespace

HostChannel::HostChannel(std::unique_ptr<Transport> transport, std::chrono::nanoseconds timeout)
    : transport_(std::move(transport)),
      timeout_(timeout),
      staging_(transport_->allocate(std::max(kStagingBytes, static_cast<std::size_t>(transport_->world_size())),
                                    Deadline::after(timeout))) {}

void HostChannel::run(const Schedule& schedule, std::size_t bytes, int root) {
  const SegmentRange range{.segment = staging_.get(), .slice = {0, bytes}, .dtype = kernels::DType::u8};
  Collective collective({.schedule = &schedule, .range = range, .root = root, .number = ++collectives_}, *transport_);
  drive(collective, *transport_, Deadline::after(timeout_));
}

std::vector<std::byte> HostChannel::all_gather(std::span<const std::byte> mine) {
  const auto world = static_cast<std::size_t>(transport_->world_size());
  const auto rank = static_cast<std::size_t>(transport_->rank());
  const std::size_t slot = staging_->size() / world;
  std::vector<std::byte> all(world * mine.size());
  for (std::size_t begin = 0; begin < mine.size(); begin += slot) {
    const std::size_t bytes = std::min(slot, mine.size() - begin);
    std::memcpy(staging_->data() + rank * bytes, mine.data() + begin, bytes);
    run(kRingAllGather, world * bytes, 0);
    for (std::size_t from = 0; from < world; ++from)
      std::memcpy(all.data() + from * mine.size() + begin, staging_->data() + from * bytes, bytes);
  }
  return all;
}

void HostChannel::broadcast(std::span<std::byte> bytes, int root) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += staging_->size()) {
    const std::size_t length = std::min(staging_->size(), bytes.size() - begin);
    if (transport_->rank() == root) std::memcpy(staging_->data(), bytes.data() + begin, length);
    run(kChainBroadcast, length, root);
    std::memcpy(bytes.data() + begin, staging_->data(), length);
  }
}

void HostChannel::barrier() { run(kDisseminationBarrier, 0, 0); }

ProcessGroup::ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<Transport> control, Duration timeout)
    : data_(std::move(data)), host_(std::make_unique<HostChannel>(std::move(control), timeout)), timeout_(timeout) {}

ProcessGroup::~ProcessGroup() = default;

std::unique_ptr<Segment> ProcessGroup::allocate(std::size_t bytes) {
  return data_->allocate(bytes, Deadline::after(timeout_));
}

void ProcessGroup::run(const Schedule& schedule, const SegmentRange& range, int root, kernels::Stream& stream) {
  check_range(range, schedule);
  check(root >= 0 && root < world_size(), [&] {
    return fmt::format("{} has root rank {}: expected a rank of a world of {}", schedule.operation, root, world_size());
  });
  const CollectiveSpec spec{.schedule = &schedule,
                            .range = range,
                            .chunk_bytes = data_->chunk_bytes(),
                            .root = root,
                            .number = ++collectives_};
  // On a CPU stream this runs as work of the stream, so its deadline starts after earlier work. On a GPU it runs at
  // once.
  data_->submit(stream, [this, spec] {
    const ExclusiveUse exclusive(in_use_);
    Collective collective(spec, *data_);
    drive(collective, *data_, Deadline::after(timeout_));
  });
}

void ProcessGroup::all_reduce(const SegmentRange& range, kernels::Stream& stream, AllReduceAlgorithm algorithm) {
  if (algorithm == AllReduceAlgorithm::nccl) return all_reduce_by_vendor(range, stream);
  const bool can_expose = data_->reaches_peers_memory();
  check(can_expose || algorithm != AllReduceAlgorithm::direct,
        "a direct all_reduce needs ranks that reach each other's memory, and this transport has no such access: use "
        "the ring");
  const bool direct = can_expose && algorithm != AllReduceAlgorithm::ring;
  run(direct ? kDirectAllReduce : kRingAllReduce, range, 0, stream);
}

void ProcessGroup::all_reduce_by_vendor(const SegmentRange& range, kernels::Stream& stream) {
  check_range(range, kRingAllReduce);
  VendorAllReduce* const vendor = data_->vendor_all_reduce();
  check(vendor != nullptr, "an NCCL all_reduce needs the NCCL transport, and this group has another one: use the ring");
  const ExclusiveUse exclusive(in_use_);
  vendor->all_reduce(range, ++collectives_, stream);
}

void ProcessGroup::reduce_scatter(const SegmentRange& range, kernels::Stream& stream) {
  run(kRingReduceScatter, range, 0, stream);
}

void ProcessGroup::all_gather(const SegmentRange& range, kernels::Stream& stream) {
  run(kRingAllGather, range, 0, stream);
}

void ProcessGroup::broadcast(const SegmentRange& range, int root, kernels::Stream& stream) {
  run(kChainBroadcast, range, root, stream);
}

void ProcessGroup::barrier(kernels::Stream& stream) { run(kDisseminationBarrier, {}, 0, stream); }

Slice ProcessGroup::shard(std::size_t elements, int rank) const {
  check(rank >= 0 && rank < world_size(),
        [&] { return fmt::format("no shard for rank {}: expected a rank of a world of {}", rank, world_size()); });
  return shard_of(elements, static_cast<std::size_t>(world_size()), static_cast<std::size_t>(rank));
}

void ProcessGroup::all_reduce_on_host(std::span<double> values) { sum_on_host(*host_, values); }
void ProcessGroup::all_reduce_on_host(std::span<std::int64_t> values) { sum_on_host(*host_, values); }

std::string ProcessGroup::broadcast_on_host(const std::string& text, int root) {
  check(root >= 0 && root < world_size(), [&] {
    return fmt::format("broadcast has root rank {}: expected a rank of a world of {}", root, world_size());
  });
  std::uint64_t length = text.size();
  host_->broadcast(std::as_writable_bytes(std::span(&length, 1)), root);
  std::string result = rank() == root ? text : std::string(length, '\0');
  host_->broadcast(std::as_writable_bytes(std::span(result)), root);
  return result;
}

std::vector<std::byte> ProcessGroup::all_gather_on_host(std::span<const std::byte> mine) {
  return host_->all_gather(mine);
}

void ProcessGroup::barrier_on_host() { host_->barrier(); }

}  // namespace gradring::comm
