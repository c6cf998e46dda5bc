// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/channel.h"
#include "comm/collectives/schedule.h"
#include "comm/transport/transport.h"
#include "kernels/runtime/trace_track.h"

namespace gradring::comm {

class HostChannel;

/// The all_reduce algorithm. All but `nccl` give the same bits.
enum class AllReduceAlgorithm : std::uint8_t {
  automatic,  ///< direct where ranks reach each other's memory, else the ring
  ring,       ///< collectives/schedules.h
  direct,     ///< collectives/schedules.h
  nccl,       ///< ncclAllReduce, for comparison; needs the NCCL transport, which chooses the order of sums
};

/// One rank's view of the ranks that train together: collectives on memory that they allocated together, and helpers
/// for host values. Every rank makes the same calls in the same order.
///
/// Order     collectives are enqueued on `stream` and run there: in place in the caller, or on the stream's worker.
///           Only one stream at a time may run them. The group and the segment must outlive the enqueued work. Host
///           helpers use a second channel, block the caller, and may run while collectives are in flight.
/// Threads   one thread makes the collective calls, one thread (the same or another) the host calls.
/// Errors    InvalidArgument if a range does not fit its segment. CommError (PeerLost, Timeout, Desync) where the work
///           runs: a threaded stream throws it from its next call. No wait exceeds the group's timeout. A failure of a
///           collective or of a host call fails both, with one error.
/// Numerics  deterministic and bit-identical on all ranks: the order of sums is fixed (collectives/schedules.h). f32, i32
///           and i64 are summed in their type; f16 and bf16 are added in f32 and rounded at every hop; u8 has no sum.
class ProcessGroup {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `data` carries the collectives, `control` the host helpers: two transports of the same ranks. Blocks until all
  /// ranks have joined.
  ///
  /// Errors    Timeout that names the missing ranks.
  ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<Transport> control, Duration timeout);
  /// The same with a control channel that is already in use.
  ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<HostChannel> control, Duration timeout);
  ~ProcessGroup();

  int rank() const { return data_->rank(); }
  int world_size() const { return data_->world_size(); }
  Duration timeout() const { return timeout_; }
  /// For waits on streams that run collectives. Those have a deadline of their own, counted from their start, after
  /// the host's, and the error that follows names the missing rank: the host must not give up before.
  Deadline after_collectives() const;

  /// Memory for collectives: `bytes` on every rank, zeroed. Blocks until all ranks have called it.
  std::unique_ptr<Segment> allocate(std::size_t bytes);

  /// range = sum of all ranks' ranges, on every rank. The algorithm is equal on all ranks.
  void all_reduce(const SegmentRange& range, kernels::Stream& stream,
                  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic);
  /// This rank's shard of the range = sum of all ranks' shards there; the rest of the range holds partial sums.
  void reduce_scatter(const SegmentRange& range, kernels::Stream& stream);
  /// Copies every rank's shard of the range to all ranks.
  void all_gather(const SegmentRange& range, kernels::Stream& stream);
  /// Copies the root's range to all ranks.
  void broadcast(const SegmentRange& range, int root, kernels::Stream& stream);
  /// Work enqueued after it starts only when every rank's stream has reached it.
  void barrier(kernels::Stream& stream);

  /// Records the collectives that are enqueued from now on, for transports of CPUs; null: no longer. For those of GPUs
  /// the track must not record, and may show ranges to a profiler.
  void trace(kernels::TraceTrack* track) { trace_ = track; }

  /// Runs `launch`, which enqueues a graph of this group's collectives on `stream`. The watchdog monitors them too.
  void replay(kernels::Stream& stream, const std::function<void()>& launch) { data_->replay(stream, launch); }
  /// Throws the error that failed the group, if any. Call it after waiting for a GPU's stream: when the group fails,
  /// the stream's work ends early without an error. Safe from any thread.
  void throw_if_failed() const { data_->throw_if_failed(); }

  /// The elements of a range of `elements` that belong to `rank` in reduce_scatter and all_gather: consecutive shards,
  /// the first elements % world_size of them longer by one.
  Slice shard(std::size_t elements, int rank) const;

  /// Sums over all ranks, in rank order, bit-identical on all ranks. Blocks.
  void all_reduce_on_host(std::span<double> values);
  void all_reduce_on_host(std::span<std::int64_t> values);
  /// The root's text, on every rank. Blocks.
  std::string broadcast_on_host(const std::string& text, int root);
  /// Every rank's bytes in rank order; the length is equal on all ranks. Blocks.
  std::vector<std::byte> all_gather_on_host(std::span<const std::byte> mine);
  /// Returns when every rank has called it.
  void barrier_on_host();

 private:
  void run(const Schedule& schedule, const SegmentRange& range, kernels::Stream& stream, int root = kNoRoot);
  kernels::TraceRange range_of(const Schedule& schedule) const;
  void all_reduce_by_vendor(const SegmentRange& range, kernels::Stream& stream);

  FirstFailure first_failure_;
  Channel data_;
  std::unique_ptr<HostChannel> host_;
  Duration timeout_;
  kernels::TraceTrack* trace_ = nullptr;
  std::uint64_t collectives_ = 0;  // started so far
};

}  // namespace gradring::comm
