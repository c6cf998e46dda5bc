// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/loader/batch.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/shape.h"

namespace gradring::train {

/// A batch on the device: images in the type that a program computes in, labels beside them.
class DeviceBatch {
 public:
  /// Room for `max_batch` samples of shape `sample`.
  DeviceBatch(kernels::Device& device, const kernels::KernelSet& kernels, const kernels::Shape& sample,
              std::int64_t max_batch, kernels::DType dtype);

  /// Copies a batch of the loader here. It must live until the stream has done so.
  void enqueue_load(kernels::Stream& stream, const data::Batch& batch);

  const void* images() const { return rounded() ? rounded_.data() : images_.data(); }
  const std::int32_t* labels() const { return labels_.as<std::int32_t>(); }

 private:
  bool rounded() const { return dtype_ != kernels::DType::f32; }

  kernels::DType dtype_;
  kernels::cast::Variant cast_;
  kernels::Buffer images_;   // f32, as the loader has them
  kernels::Buffer rounded_;  // empty in f32
  kernels::Buffer labels_;
};

}  // namespace gradring::train
