// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/device_batch.h"

#include "kernels/variant.h"

namespace gradring::train {

DeviceBatch::DeviceBatch(kernels::Device& device, const kernels::KernelSet& kernels, const kernels::Shape& sample,
                         std::int64_t max_batch, kernels::DType dtype)
    : dtype_(dtype), cast_(kernels::pick_variant(kernels.cast, device, dtype)) {
  const auto elements = static_cast<std::size_t>(max_batch * sample.elements());
  images_ = device.allocate(elements * sizeof(float));
  if (rounded()) rounded_ = device.allocate(elements * kernels::size_of(dtype));
  labels_ = device.allocate(static_cast<std::size_t>(max_batch) * sizeof(std::int32_t));
}

void DeviceBatch::enqueue_load(kernels::Stream& stream, const data::Batch& batch) {
  stream.enqueue_copy(images_.data(), batch.images().data(), batch.images().size_bytes());
  stream.enqueue_copy(labels_.data(), batch.labels().data(), batch.labels().size_bytes());
  if (rounded())
    cast_.run(stream, {.from = kernels::DType::f32,
                       .to = dtype_,
                       .x = images_.data(),
                       .y = rounded_.data(),
                       .elements = batch.images().size()});
}

}  // namespace gradring::train
