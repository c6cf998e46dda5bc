// SPDX-License-Identifier: Apache-2.0
#include "comm/process_group.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "comm/collectives/collective.h"
#include "comm/collectives/schedules.h"
#include "comm/host_channel.h"
#include "comm/transport/sum.h"
#include "kernels/base/error.h"

namespace gradring::comm {
namespace {

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
constexpr std::string_view kOneStream =
    "collectives of one group run on two streams at the same time: enqueue them on one stream";

/// The longest abort of a collective on a GPU (transport/nccl/dependencies.h), and some slack.
constexpr std::chrono::seconds kAbortTime(15);

template <class T>
void sum_on_host(HostChannel& channel, std::span<T> values, std::string_view operation) {
  const std::vector<std::byte> all = channel.all_gather(std::as_bytes(values), operation);
  std::vector<T> part(values.size());
  for (std::size_t begin = 0; begin < all.size(); begin += values.size_bytes()) {
    std::memcpy(part.data(), all.data() + begin, values.size_bytes());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = begin == 0 ? part[i] : values[i] + part[i];
  }
}

}  // namespace

ProcessGroup::ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<Transport> control, Duration timeout)
    : ProcessGroup(std::move(data), std::make_unique<HostChannel>(std::move(control), timeout), timeout) {}

ProcessGroup::ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<HostChannel> control, Duration timeout)
    : data_(std::move(data)), host_(std::move(control)), timeout_(timeout) {
  Channel::fail_together(data_, host_->channel(), first_failure_);
}

ProcessGroup::~ProcessGroup() = default;

Deadline ProcessGroup::after_collectives() const { return Deadline::after(2 * timeout_ + kAbortTime); }

std::unique_ptr<Segment> ProcessGroup::allocate(std::size_t bytes) {
  const Channel::Use use(data_, "memory is allocated while a collective runs: synchronize its stream first");
  return data_->allocate(bytes, Deadline::after(timeout_));
}

void ProcessGroup::run(const Schedule& schedule, const SegmentRange& range, kernels::Stream& stream, int root) {
  check_range(range, schedule);
  const CollectiveSpec spec{.schedule = &schedule,
                            .range = range,
                            .chunk_bytes = data_->chunk_bytes(),
                            .root = root,
                            .number = ++collectives_,
                            .trace = trace_};
  // On a CPU stream this runs as work of the stream, so its deadline starts after earlier work. On a GPU it runs at
  // once.
  const kernels::TraceRange traced = range_of(schedule);
  data_->submit(stream, [this, spec] {
    const Channel::Use use(data_, kOneStream);
    Collective collective(spec, *data_);
    drive(collective, *data_, Deadline::after(timeout_));
  });
}

/// For a profiler: the collective that was counted last.
kernels::TraceRange ProcessGroup::range_of(const Schedule& schedule) const {
  return {trace_, kernels::TraceCategory::collective, schedule.operation.data(),  // of a literal
          static_cast<std::int64_t>(collectives_)};
}

void ProcessGroup::all_reduce(const SegmentRange& range, kernels::Stream& stream, AllReduceAlgorithm algorithm) {
  if (algorithm == AllReduceAlgorithm::nccl) return all_reduce_by_vendor(range, stream);
  const bool can_expose = data_->reaches_peers_memory();
  check(can_expose || algorithm != AllReduceAlgorithm::direct,
        "a direct all_reduce needs ranks that reach each other's memory, and this transport has no such access: use "
        "the ring");
  const bool direct = can_expose && algorithm != AllReduceAlgorithm::ring;
  run(direct ? kDirectAllReduce : kRingAllReduce, range, stream);
}

void ProcessGroup::all_reduce_by_vendor(const SegmentRange& range, kernels::Stream& stream) {
  check_range(range, kRingAllReduce);
  VendorAllReduce* const vendor = data_->vendor_all_reduce();
  check(vendor != nullptr, "an NCCL all_reduce needs the NCCL transport, and this group has another one: use the ring");
  const Channel::Use use(data_, kOneStream);
  ++collectives_;
  const kernels::TraceRange traced = range_of(kRingAllReduce);
  vendor->all_reduce(range, collectives_, stream);
}

void ProcessGroup::reduce_scatter(const SegmentRange& range, kernels::Stream& stream) {
  run(kRingReduceScatter, range, stream);
}

void ProcessGroup::all_gather(const SegmentRange& range, kernels::Stream& stream) {
  run(kRingAllGather, range, stream);
}

void ProcessGroup::broadcast(const SegmentRange& range, int root, kernels::Stream& stream) {
  check(root >= 0 && root < world_size(), [&] {
    return fmt::format("broadcast has root rank {}: expected a rank of a world of {}", root, world_size());
  });
  run(kChainBroadcast, range, stream, root);
}

void ProcessGroup::barrier(kernels::Stream& stream) { run(kDisseminationBarrier, {}, stream); }

Slice ProcessGroup::shard(std::size_t elements, int rank) const {
  check(rank >= 0 && rank < world_size(),
        [&] { return fmt::format("no shard for rank {}: expected a rank of a world of {}", rank, world_size()); });
  return shard_of(elements, static_cast<std::size_t>(world_size()), static_cast<std::size_t>(rank));
}

void ProcessGroup::all_reduce_on_host(std::span<double> values) { sum_on_host(*host_, values, "all_reduce f64"); }
void ProcessGroup::all_reduce_on_host(std::span<std::int64_t> values) { sum_on_host(*host_, values, "all_reduce i64"); }

std::string ProcessGroup::broadcast_on_host(const std::string& text, int root) {
  return host_->broadcast_text(text, root);
}

std::vector<std::byte> ProcessGroup::all_gather_on_host(std::span<const std::byte> mine) {
  return host_->all_gather(mine);
}

void ProcessGroup::barrier_on_host() { host_->barrier(); }

}  // namespace gradring::comm
