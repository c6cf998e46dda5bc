// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/frozen_weights.h"

namespace gradring::train {

using kernels::DType;

FrozenWeights::FrozenWeights(const nn::ArenaLayout& layout, DType dtype, const Parts& parts)
    : parts_(parts), dtype_(dtype), elements_(layout.frozen_elements()) {
  if (elements_ == 0) return;
  master_ = parts.group.allocate(elements_ * sizeof(float));
  if (dtype != DType::f32) rounded_ = parts.device.allocate(elements_ * kernels::size_of(dtype));
}

const std::byte* FrozenWeights::data() const {
  if (!master_) return nullptr;
  return dtype_ == DType::f32 ? master_->data() : rounded_.data();
}

void FrozenWeights::load(const float* of_rank_0, Deadline deadline) {
  if (!master_) return;
  kernels::Stream& stream = parts_.stream;
  if (parts_.group.rank() == 0) stream.enqueue_copy(master_->data(), of_rank_0, master_->size());
  parts_.group.broadcast({.segment = master_.get(), .slice = {0, elements_}}, 0, stream);
  if (dtype_ != DType::f32)
    parts_.cast.run(
        stream, {.from = DType::f32, .to = dtype_, .x = master_->data(), .y = rounded_.data(), .elements = elements_});
  stream.synchronize(deadline);
}

void FrozenWeights::copy_to(float* host, Deadline deadline) const {
  if (!master_) return;
  parts_.stream.enqueue_copy(host, master_->data(), master_->size());
  parts_.stream.synchronize(deadline);
}

}  // namespace gradring::train
