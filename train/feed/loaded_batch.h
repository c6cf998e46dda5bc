// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/loader/batch.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/shape.h"
#include "train/feed/batch_source.h"

namespace gradring::train {

/// Batches that a loader made on the host: copied as they are, and rounded on the device.
class LoadedBatch final : public BatchSource {
 public:
  /// Room for `max_batch` samples of shape `sample`.
  LoadedBatch(kernels::Device& device, const kernels::KernelSet& kernels, const kernels::Shape& sample,
              std::int64_t max_batch, kernels::DType dtype);

  /// The batch that comes next. It must live until the stream has copied it.
  void set(const data::Batch& batch) { batch_ = &batch; }

  void enqueue_copies(kernels::Stream& stream) override;
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override;
  const void* images() const override { return rounds() ? rounded_.data() : images_.data(); }
  const std::int32_t* labels() const override { return labels_.as<std::int32_t>(); }

 private:
  bool rounds() const { return dtype_ != kernels::DType::f32; }

  kernels::DType dtype_;
  std::size_t sample_elements_;
  kernels::cast::Variant cast_;
  const data::Batch* batch_ = nullptr;
  kernels::Buffer images_;   // f32, as the loader has them
  kernels::Buffer rounded_;  // empty in f32
  kernels::Buffer labels_;
};

}  // namespace gradring::train
