// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "comm/process_group.h"
#include "kernels/base/deadline.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"
#include "train/core/ddp/buckets.h"

namespace gradring::train {

/// Overlaps communication with backward: each bucket of gradients is summed over the ranks, on a communication stream,
/// as soon as backward has enqueued its last tensor. The loss is already divided by the samples of all ranks, so the
/// sum is the mean.
///
///   compute stream         ... dgrad fc1 | wgrad fc1 |  conv2 ...        | conv1 ... |   wait   | optimizer
///                                                    \ event                        \ event   /
///   communication stream                              sum of bucket 0                bucket 1 /
///
/// On a CPU the communication stream has a thread of its own. In place, backward waits for each sum: the same bits, for
/// comparison.
///
/// Threads   the trainer's. The group, layout and stream must outlive it.
/// Errors    comm::CommError from the collectives.
class DistributedDataParallel {
 public:
  /// Enqueues the sum of a bucket over the ranks.
  using SumBucket = std::function<void(int bucket, kernels::Stream& communication)>;

  DistributedDataParallel(comm::ProcessGroup& group, const nn::ArenaLayout& layout, kernels::Device& device,
                          kernels::Stream& compute,
                          kernels::StreamMode communication = kernels::StreamMode::asynchronous);

  /// Begins a backward pass whose buckets are summed by `sum_bucket`, in order, on all ranks alike. Before that,
  /// `complete_bucket` enqueues on the compute stream what the gradients of a bucket still lack.
  void begin_backward(
      SumBucket sum_bucket, std::function<void()> complete_bucket = [] {});
  void gradient_ready(int parameter);
  /// Buckets of this pass whose sums are enqueued.
  int buckets_enqueued() const { return next_bucket_; }

  /// Has `communication` enqueue work on the communication stream that starts when the compute stream reaches this
  /// point; `here` marks the point.
  void enqueue_after_compute(kernels::Event& here, const std::function<void(kernels::Stream&)>& communication);
  /// Makes the compute stream wait for all sums.
  void enqueue_join();
  /// Makes the compute stream wait for an event of the communication stream.
  void enqueue_wait(const kernels::Event& event);
  /// Has `collective` enqueue communication on the compute stream itself, after a join: it overlaps with nothing.
  void enqueue_in_line(const std::function<void(kernels::Stream&)>& collective);
  /// To be called when all communication of a step is enqueued.
  void enqueue_end_of_step();
  /// Runs `launch`, which enqueues a recording with collectives on the compute stream.
  void replay(const std::function<void()>& launch) { group_.replay(compute_, launch); }
  /// Records waits on one track, on a CPU only, and the sums of buckets on the other.
  void trace(kernels::TraceTrack& compute, kernels::TraceTrack& communication) {
    trace_ = &compute;
    trace_of_sums_ = &communication;
  }
  /// Throws the group's error; to be called after waiting for a GPU's stream (ProcessGroup::throw_if_failed).
  void throw_if_failed() const { group_.throw_if_failed(); }

  /// Exposed communication: the time for which the compute stream waited in the last completed step. In place that is
  /// all communication. Time in which the process was stopped does not count (RunningClock). On a GPU it is 0: a host
  /// clock would block the stream, and a graph cannot contain it.
  std::chrono::nanoseconds exposed() const { return exposed_.load(); }
  /// How long the waits of the current step took, up to here, by the steady clock: to be subtracted from a time by that
  /// clock. To be called where the compute stream runs, outside of a wait.
  std::chrono::nanoseconds waited() const { return waited_.passed; }

 private:
  /// The waits of a step, by two clocks; used on the compute stream only.
  struct Waits {
    std::chrono::steady_clock::time_point began;  // of the newest
    std::chrono::nanoseconds passed{};
    RunningClock::time_point began_running;
    std::chrono::nanoseconds running{};
  };

  void begin_wait();
  void end_wait();
  void enqueue_sum(int bucket, kernels::Stream& communication);

  comm::ProcessGroup& group_;
  const nn::ArenaLayout& layout_;
  kernels::Stream& compute_;
  SumBucket sum_bucket_;  // of this pass
  std::function<void()> complete_bucket_;
  std::vector<std::unique_ptr<kernels::Event>> ready_;  // one per bucket, recorded on the compute stream
  std::unique_ptr<kernels::Event> done_;                // recorded on the communication stream after the last bucket
  std::vector<int> tensors_;                            // in each bucket
  std::vector<int> missing_;                            // tensors of each bucket that are not ready in this pass
  Waits waited_;                                        // in this step
  std::atomic<std::chrono::nanoseconds> exposed_{};
  kernels::TraceTrack* trace_ = nullptr;
  kernels::TraceTrack* trace_of_sums_ = nullptr;
  std::vector<std::int64_t> began_;  // sums of buckets in the trace, in ns; used on the communication stream only
  bool in_place_ = false;
  bool timed_ = true;
  int next_bucket_ = 0;
  std::unique_ptr<kernels::Stream> communication_;  // last: its work uses all of the above
};

/// Lets buckets of gradients share slots: before backward writes a bucket, it waits until the sum of the slot's
/// previous bucket has been collected, and zeroes the slot.
class SlotRotation {
 public:
  SlotRotation(kernels::Device& device, kernels::Stream& compute, const BucketMemory& gradients,
               DistributedDataParallel& ddp);

  void begin_backward() { next_to_open_ = 0; }
  /// Opens the slots of these parameters' buckets, and of all buckets before.
  void enqueue_open(std::span<const int> parameters);
  /// To be called when the sum of a bucket has been collected on the communication stream.
  void record_collected(int bucket, kernels::Stream& communication) {
    communication.record(*collected_[static_cast<std::size_t>(bucket)]);
  }

 private:
  kernels::Stream& compute_;
  const BucketMemory& gradients_;
  DistributedDataParallel& ddp_;
  std::vector<std::unique_ptr<kernels::Event>> collected_;  // one per bucket, recorded on the communication stream
  int next_to_open_ = 0;
};

}  // namespace gradring::train
