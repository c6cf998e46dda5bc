// SPDX-License-Identifier: Apache-2.0
#include "train/feed/loaded_batch.h"

#include "kernels/variant.h"

namespace gradring::train {

LoadedBatch::LoadedBatch(kernels::Device& device, const kernels::KernelSet& kernels, const kernels::Shape& sample,
                         std::int64_t max_batch, kernels::DType dtype)
    : dtype_(dtype),
      sample_elements_(static_cast<std::size_t>(sample.elements())),
      cast_(kernels::pick_variant(kernels.cast, device, dtype)) {
  const std::size_t elements = static_cast<std::size_t>(max_batch) * sample_elements_;
  images_ = device.allocate(elements * sizeof(float));
  if (rounds()) rounded_ = device.allocate(elements * kernels::size_of(dtype));
  labels_ = device.allocate(static_cast<std::size_t>(max_batch) * sizeof(std::int32_t));
}

void LoadedBatch::enqueue_copies(kernels::Stream& stream) {
  stream.enqueue_copy(images_.data(), batch_->images().data(), batch_->images().size_bytes());
  stream.enqueue_copy(labels_.data(), batch_->labels().data(), batch_->labels().size_bytes());
}

void LoadedBatch::enqueue_preparation(kernels::Stream& stream, std::int64_t count) {
  if (!rounds()) return;
  cast_.run(stream, {.from = kernels::DType::f32,
                     .to = dtype_,
                     .x = images_.data(),
                     .y = rounded_.data(),
                     .elements = static_cast<std::size_t>(count) * sample_elements_});
}

}  // namespace gradring::train
