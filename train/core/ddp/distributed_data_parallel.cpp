// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/distributed_data_parallel.h"

#include <utility>

#include "kernels/base/error.h"

namespace gradring::train {

DistributedDataParallel::DistributedDataParallel(comm::ProcessGroup& group, const nn::ArenaLayout& layout,
                                                 kernels::Device& device, kernels::Stream& compute,
                                                 kernels::StreamMode communication)
    : group_(group),
      layout_(layout),
      compute_(compute),
      done_(device.make_event()),
      tensors_(static_cast<std::size_t>(layout.buckets())),
      began_(static_cast<std::size_t>(layout.buckets())),
      in_place_(communication == kernels::StreamMode::in_place),
      timed_(device.id().kind == kernels::DeviceKind::cpu),
      communication_(device.make_stream(communication)) {
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) ready_.push_back(device.make_event());
  for (int parameter = 0; parameter < layout.parameters(); ++parameter)
    if (!layout.is_frozen(parameter)) ++tensors_[static_cast<std::size_t>(layout.bucket_of(parameter))];
}

void DistributedDataParallel::begin_backward(SumBucket sum_bucket, std::function<void()> complete_bucket) {
  sum_bucket_ = std::move(sum_bucket);
  complete_bucket_ = std::move(complete_bucket);
  missing_ = tensors_;
  next_bucket_ = 0;
}

void DistributedDataParallel::gradient_ready(int parameter) {
  --missing_[static_cast<std::size_t>(layout_.bucket_of(parameter))];
  while (next_bucket_ < layout_.buckets() && missing_[static_cast<std::size_t>(next_bucket_)] == 0) {
    const int bucket = next_bucket_++;
    complete_bucket_();
    enqueue_after_compute(*ready_[static_cast<std::size_t>(bucket)],
                          [this, bucket](kernels::Stream& communication) { enqueue_sum(bucket, communication); });
  }
}

void DistributedDataParallel::enqueue_sum(int bucket, kernels::Stream& communication) {
  using kernels::TraceTrack;
  const kernels::TraceRange range(trace_of_sums_, kernels::TraceCategory::bucket, "bucket", bucket);
  if (!trace_of_sums_ || !trace_of_sums_->recording()) return sum_bucket_(bucket, communication);
  const auto index = static_cast<std::size_t>(bucket);
  const auto bytes = static_cast<std::int64_t>(layout_.bucket(bucket).elements * sizeof(float));
  const std::int64_t ready = TraceTrack::now();
  communication.enqueue([this, index] { began_[index] = TraceTrack::now(); });
  sum_bucket_(bucket, communication);
  communication.enqueue([this, index, bytes, ready] {
    trace_of_sums_->add({.category = kernels::TraceCategory::bucket,
                         .name = "bucket",
                         .begin = began_[index],
                         .end = TraceTrack::now(),
                         .numbers = {static_cast<std::int64_t>(index), bytes, ready}});
  });
}

void DistributedDataParallel::enqueue_after_compute(kernels::Event& here,
                                                    const std::function<void(kernels::Stream&)>& communication) {
  compute_.record(here);
  communication_->enqueue_wait(here);
  if (!in_place_) return communication(*communication_);
  begin_wait();
  communication(*communication_);
  communication_->record(*done_);  // the stream of a GPU is asynchronous in place, too: backward waits here
  compute_.enqueue_wait(*done_);
  end_wait();
}

void DistributedDataParallel::enqueue_join() {
  check(next_bucket_ == layout_.buckets(), "backward ended before every gradient was ready");
  communication_->record(*done_);
  enqueue_wait(*done_);
}

void DistributedDataParallel::enqueue_wait(const kernels::Event& event) {
  begin_wait();
  compute_.enqueue_wait(event);
  end_wait();
}

void DistributedDataParallel::enqueue_in_line(const std::function<void(kernels::Stream&)>& collective) {
  begin_wait();
  collective(compute_);
  end_wait();
}

void DistributedDataParallel::enqueue_end_of_step() {
  if (timed_) compute_.enqueue([this] { exposed_ = std::exchange(waited_, {}).running; });
}

void DistributedDataParallel::begin_wait() {
  if (!timed_) return;
  compute_.enqueue([this] {
    waited_.began = std::chrono::steady_clock::now();
    waited_.began_running = RunningClock::now();
  });
}

void DistributedDataParallel::end_wait() {
  if (!timed_) return;
  compute_.enqueue([this] {
    const auto now = std::chrono::steady_clock::now();
    waited_.passed += now - waited_.began;
    waited_.running += RunningClock::now() - waited_.began_running;
    if (!trace_ || !trace_->recording()) return;
    trace_->add({.category = kernels::TraceCategory::wait,
                 .name = "exposed communication",
                 .begin = std::chrono::nanoseconds(waited_.began.time_since_epoch()).count(),
                 .end = std::chrono::nanoseconds(now.time_since_epoch()).count()});
  });
}

SlotRotation::SlotRotation(kernels::Device& device, kernels::Stream& compute, const BucketMemory& gradients,
                           DistributedDataParallel& ddp)
    : compute_(compute), gradients_(gradients), ddp_(ddp) {
  for (int bucket = 0; bucket < gradients.layout().buckets(); ++bucket) collected_.push_back(device.make_event());
}

void SlotRotation::enqueue_open(std::span<const int> parameters) {
  for (const int parameter : parameters)
    for (; next_to_open_ <= gradients_.layout().bucket_of(parameter); ++next_to_open_) {
      const int before = next_to_open_ - gradients_.slots();
      if (before >= 0) {
        check(before < ddp_.buckets_enqueued(), "a plan writes more buckets at once than there are slots");
        ddp_.enqueue_wait(*collected_[static_cast<std::size_t>(before)]);
      }
      // The padding between tensors is summed and checked, so it must be 0.
      compute_.enqueue_zero(gradients_.data(next_to_open_), gradients_.bytes(next_to_open_));
    }
}

}  // namespace gradring::train
