// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/distributed_data_parallel.h"

#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::train {
DistributedDataParallel::DistributedDataParallel(comm::ProcessGroup& group, comm::Segment& gradients,
                                                 GradientWire& wire, const nn::ArenaLayout& layout,
                                                 kernels::Device& device, kernels::Stream& compute,
                                                 kernels::StreamMode communication)
    : group_(group),
      segment_(gradients),
      wire_(wire),
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

void DistributedDataParallel::broadcast(const nn::Arena& arena) {
  const std::size_t bytes = layout_.elements() * sizeof(float);
  compute_.enqueue_copy(segment_.data(), arena.data, bytes);
  group_.broadcast({.segment = &segment_, .slice = {0, layout_.elements()}, .dtype = kernels::DType::f32}, 0, compute_);
  compute_.enqueue_copy(arena.data, segment_.data(), bytes);
  compute_.enqueue_zero(segment_.data(), bytes);
  compute_.synchronize(Deadline::after(group_.timeout()));
}

void DistributedDataParallel::before_backward() {
  missing_ = tensors_;
  next_bucket_ = 0;
}

void DistributedDataParallel::gradient_ready(int parameter) {
  --missing_[static_cast<std::size_t>(layout_.bucket_of(parameter))];
  while (next_bucket_ < layout_.buckets() && missing_[static_cast<std::size_t>(next_bucket_)] == 0)
    enqueue_all_reduce(next_bucket_++);
}

void DistributedDataParallel::enqueue_all_reduce(int bucket) {
  kernels::Event& ready = *ready_[static_cast<std::size_t>(bucket)];
  compute_.record(ready);
  comm_->enqueue_wait(ready);
  if (in_place_) begin_wait();
  wire_.enqueue_all_reduce(bucket, *comm_);
  if (in_place_) end_wait();
}

void DistributedDataParallel::enqueue_join() {
  check(next_bucket_ == layout_.buckets(), "backward ended before every gradient was ready");
  comm_->record(*done_);
  begin_wait();
  compute_.enqueue_wait(*done_);
  end_wait();
  if (timed_) compute_.enqueue([this] { exposed_ = std::exchange(waited_, {}); });
}

void DistributedDataParallel::begin_wait() {
  if (timed_) compute_.enqueue([this] { wait_began_ = std::chrono::steady_clock::now(); });
}

void DistributedDataParallel::end_wait() {
  if (timed_) compute_.enqueue([this] { waited_ += std::chrono::steady_clock::now() - wait_began_; });
}

}  // namespace gradring::train
