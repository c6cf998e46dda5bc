// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/distributed_data_parallel.h"

#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::train {

DistributedDataParallel::DistributedDataParallel(comm::ProcessGroup& group, BucketSum& sum,
                                                 const nn::ArenaLayout& layout, kernels::Device& device,
                                                 kernels::Stream& compute, kernels::StreamMode communication)
    : group_(group),
      sum_(sum),
      layout_(layout),
      compute_(compute),
      done_(device.make_event()),
      tensors_(static_cast<std::size_t>(layout.buckets())),
      in_place_(communication == kernels::StreamMode::in_place),
      timed_(device.id().kind == kernels::DeviceKind::cpu),
      comm_(device.make_stream(communication)) {
  for (int bucket = 0; bucket < layout.buckets(); ++bucket) ready_.push_back(device.make_event());
  for (int parameter = 0; parameter < layout.parameters(); ++parameter)
    ++tensors_[static_cast<std::size_t>(layout.bucket_of(parameter))];
}

void DistributedDataParallel::before_backward() {
  missing_ = tensors_;
  next_bucket_ = 0;
}

void DistributedDataParallel::gradient_ready(int parameter) {
  --missing_[static_cast<std::size_t>(layout_.bucket_of(parameter))];
  while (next_bucket_ < layout_.buckets() && missing_[static_cast<std::size_t>(next_bucket_)] == 0)
    enqueue_sum(next_bucket_++);
}

void DistributedDataParallel::enqueue_sum(int bucket) {
  enqueue_behind(*ready_[static_cast<std::size_t>(bucket)],
                 [this, bucket](kernels::Stream& communication) { sum_.enqueue_sum(bucket, communication); });
}

void DistributedDataParallel::enqueue_behind(kernels::Event& here,
                                             const std::function<void(kernels::Stream&)>& communication) {
  compute_.record(here);
  comm_->enqueue_wait(here);
  if (in_place_) begin_wait();
  communication(*comm_);
  if (in_place_) end_wait();
}

void DistributedDataParallel::enqueue_join() {
  check(next_bucket_ == layout_.buckets(), "backward ended before every gradient was ready");
  comm_->record(*done_);
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
  if (timed_) compute_.enqueue([this] { exposed_ = std::exchange(waited_, {}); });
}

void DistributedDataParallel::begin_wait() {
  if (timed_) compute_.enqueue([this] { wait_began_ = std::chrono::steady_clock::now(); });
}

void DistributedDataParallel::end_wait() {
  if (timed_) compute_.enqueue([this] { waited_ += std::chrono::steady_clock::now() - wait_began_; });
}

}  // namespace gradring::train
