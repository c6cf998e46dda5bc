// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "comm/process_group.h"
#include "kernels/runtime/device.h"
#include "nn/parameter/arena_layout.h"
#include "train/parallel/bucket_sum.h"

namespace gradring::train {

/// Keeps the replicas equal: each bucket of gradients is summed over the ranks as soon as backward has finished its last
/// tensor. The loss is already divided by the samples of all ranks, so the sum is the mean.
///
///   compute stream   ... dgrad fc1 | wgrad fc1 |  conv2 ...        | conv1 ... |   wait   | optimizer
///                                              \ event                        \ event   /
///   comm stream                                 sum of bucket 0                bucket 1 /
///
/// The communication stream has a thread of its own on a CPU; in place, a bucket's sum is taken before backward goes on:
/// the same sums, for comparison.
///
/// Threads   that of the trainer. The group, sum and stream must outlive it.
/// Errors    comm::CommError from the collectives.
class DistributedDataParallel {
 public:
  /// `sum` sums the buckets of `layout` over the ranks of `group`.
  DistributedDataParallel(comm::ProcessGroup& group, BucketSum& sum, const nn::ArenaLayout& layout,
                          kernels::Device& device, kernels::Stream& compute,
                          kernels::StreamMode communication = kernels::StreamMode::asynchronous);

  /// Of each backward pass whose gradients are to be summed.
  void before_backward();
  void gradient_ready(int parameter);
  /// How many buckets of this pass are on their way, or there.
  int begun() const { return next_bucket_; }

  /// Has `communication` enqueue on the communication stream what comes behind all that the compute stream was given so far;
  /// `here` marks that point.
  void enqueue_behind(kernels::Event& here, const std::function<void(kernels::Stream&)>& communication);
  /// Work enqueued on the compute stream from now on sees the summed gradients.
  void enqueue_join();
  /// Work enqueued on the compute stream from now on starts when `event` is reached, which is set on the communication stream.
  void enqueue_wait(const kernels::Event& event);
  /// Has `collective` enqueue communication on the compute stream itself, after a join: nothing hides it.
  void enqueue_in_line(const std::function<void(kernels::Stream&)>& collective);
  /// All communication of a step is enqueued.
  void enqueue_end_of_step();
  /// Runs `launch`, which enqueues a recording on the compute stream: a pass with its collectives, if it has some.
  void replay(const std::function<void()>& launch) { group_.replay(compute_, launch); }
  /// Throws what broke the group: for who has waited until a GPU's stream was done (ProcessGroup::refuse_if_broken).
  void refuse_if_broken() const { group_.refuse_if_broken(); }

  /// How long the compute stream waited for other ranks in the last step whose end it has passed: communication that nothing hid.
  /// In place that is all of it. On a GPU it is not measured, and 0: a host's clock would hold the stream up, and no graph
  /// could hold the clock.
  std::chrono::nanoseconds exposed() const { return exposed_.load(); }

 private:
  void enqueue_sum(int bucket);
  /// Around what holds the compute stream up.
  void begin_wait();
  void end_wait();

  comm::ProcessGroup& group_;
  BucketSum& sum_;
  const nn::ArenaLayout& layout_;
  kernels::Stream& compute_;
  std::vector<std::unique_ptr<kernels::Event>> ready_;  // one a bucket, set on the compute stream
  std::unique_ptr<kernels::Event> done_;                // set on the comm stream after the last bucket
  std::vector<int> tensors_;                            // in each bucket
  std::vector<int> missing_;                            // of those, not yet ready in this step
  std::chrono::steady_clock::time_point wait_began_;    // the compute stream's alone
  std::chrono::nanoseconds waited_{};                   // in this step; the compute stream's alone
  std::atomic<std::chrono::nanoseconds> exposed_{};
  bool in_place_ = false;                  // communication holds backward up
  bool timed_ = true;                      // see exposed()
  int next_bucket_ = 0;                    // buckets go out in order, on all ranks alike
  std::unique_ptr<kernels::Stream> comm_;  // last: its work uses all of the above
};

}  // namespace gradring::train
