// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/collectives/schedule.h"
#include "comm/transport/transport.h"

namespace gradring::comm {

class HostChannel;

/// How an all_reduce goes about it; the bits of the result depend on it only where it says so.
enum class AllReduceAlgorithm : std::uint8_t {
  automatic,  ///< direct where ranks reach each other's memory, else the ring
  ring,       ///< collectives/ring.h
  direct,     ///< collectives/direct.h
  nccl,       ///< ncclAllReduce, the yardstick; where NCCL connects the ranks. Its order of sums is its own
};

/// The ranks that train together, as one rank sees them: collectives on memory that they allocated together, and a few
/// helpers for values on the host. Every rank makes the same calls in the same order.
///
/// Order     collectives are enqueued on `stream` and run there: in place in the caller, or on the stream's worker
///           while the host goes on. One stream at a time carries them. The group and the segment must outlive the
///           enqueued work. Host helpers use a channel of their own and may run while collectives are in flight; they
///           block the caller.
/// Threads   one thread makes the collective calls, one thread (the same or another) the host calls.
/// Errors    InvalidArgument if a range does not fit its segment. CommError (PeerLost, Timeout, Desync) where the work
///           runs: a threaded stream throws it from its next call. Nothing waits longer than the group's timeout.
/// Numerics  every rank ends with the same bits, run after run: the order of sums is fixed (collectives/ring.h). f32,
///           i32 and i64 are summed in their type; f16 and bf16 are added in f32 and rounded at every hop; u8 has no
///           sum.
class ProcessGroup {
 public:
  using Duration = std::chrono::nanoseconds;

  /// `data` carries the collectives, `control` the host helpers: two transports of the same ranks. Blocks until all
  /// ranks have come.
  ///
  /// Errors    Timeout that names who did not.
  ProcessGroup(std::unique_ptr<Transport> data, std::unique_ptr<Transport> control, Duration timeout);
  ~ProcessGroup();

  int rank() const { return data_->rank(); }
  int world_size() const { return data_->world_size(); }
  Duration timeout() const { return timeout_; }

  /// Memory that collectives can work on: `bytes` on every rank, zeroed. Blocks until all ranks have called it.
  std::unique_ptr<Segment> allocate(std::size_t bytes);

  /// range = sum of all ranks' ranges, on every rank. All ranks give the same algorithm.
  void all_reduce(const SegmentRange& range, kernels::Stream& stream,
                  AllReduceAlgorithm algorithm = AllReduceAlgorithm::automatic);
  /// This rank's shard of the range = sum of all ranks' shards there; the rest of the range holds partial sums.
  void reduce_scatter(const SegmentRange& range, kernels::Stream& stream);
  /// Every rank's shard of the range goes to all ranks.
  void all_gather(const SegmentRange& range, kernels::Stream& stream);
  /// The root's range goes to all ranks.
  void broadcast(const SegmentRange& range, int root, kernels::Stream& stream);
  /// Work enqueued after it starts only when every rank's stream has come here.
  void barrier(kernels::Stream& stream);

  /// Runs `launch`, which enqueues a graph of this group's collectives on `stream`: they are watched like all others.
  void replay(kernels::Stream& stream, const std::function<void()>& launch) { data_->replay(stream, launch); }
  /// Throws what broke the group, if something did; to be called after waiting for a GPU's stream, whose work ends early
  /// and quietly then. From any thread.
  void refuse_if_broken() const { data_->refuse_if_broken(); }

  /// Which elements of a range of `elements` belong to `rank` in reduce_scatter and all_gather: consecutive shards, the
  /// first elements % world_size of them longer by one.
  Slice shard(std::size_t elements, int rank) const;

  /// Sums over all ranks, in the order of the ranks; the same bits everywhere. Blocks.
  void all_reduce_on_host(std::span<double> values);
  void all_reduce_on_host(std::span<std::int64_t> values);
  /// The root's text, on every rank. Blocks.
  std::string broadcast_on_host(const std::string& text, int root);
  /// Every rank's bytes in the order of the ranks; all ranks give as many. Blocks.
  std::vector<std::byte> all_gather_on_host(std::span<const std::byte> mine);
  /// Returns when every rank has called it.
  void barrier_on_host();

 private:
  void run(const Schedule& schedule, const SegmentRange& range, int root, kernels::Stream& stream);
  void all_reduce_by_vendor(const SegmentRange& range, kernels::Stream& stream);

  std::unique_ptr<Transport> data_;
  std::unique_ptr<HostChannel> host_;
  Duration timeout_;
  std::uint64_t collectives_ = 0;      // begun so far
  std::atomic<bool> carrying_{false};  // whether a stream is in the middle of one
};

}  // namespace gradring::comm
