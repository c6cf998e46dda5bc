// SPDX-License-Identifier: Apache-2.0
#include "train/core/ddp/gathered_statistics.h"

#include "nn/program/arena.h"

namespace gradring::train {

int GatheredStatistics::reserve(std::size_t floats) {
  constexpr std::size_t kAlignment = nn::ArenaLayout::kAlignment;
  const std::size_t elements = floats * static_cast<std::size_t>(replicas() * shards_);
  reserved_.push_back({.slice = {elements_, elements}});
  elements_ += (elements + kAlignment - 1) / kAlignment * kAlignment;
  return static_cast<int>(reserved_.size()) - 1;
}

void GatheredStatistics::connect(kernels::Device& device, DistributedDataParallel& ddp) {
  ddp_ = &ddp;
  if (elements_ > 0) segment_ = group_.allocate(elements_ * sizeof(float));
  for (Rows& rows : reserved_) {
    rows.written = device.make_event();
    rows.gathered = device.make_event();
  }
}

float* GatheredStatistics::rows(int number) const {
  return reinterpret_cast<float*>(segment_->data()) + reserved_[static_cast<std::size_t>(number)].slice.offset;
}

void GatheredStatistics::enqueue_gather(int number) {
  const Rows& rows = reserved_[static_cast<std::size_t>(number)];
  ddp_->enqueue_after_compute(*rows.written, [&](kernels::Stream& communication) {
    group_.all_gather({.segment = segment_.get(), .slice = rows.slice, .dtype = kernels::DType::f32}, communication);
    communication.record(*rows.gathered);
  });
  ddp_->enqueue_wait(*rows.gathered);
}

}  // namespace gradring::train
