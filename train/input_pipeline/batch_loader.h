// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/kernel_set.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/error.h"

namespace gradring::train {

/// A batch on the device, in the type that layers compute in. It is enqueued in two parts: copies, which differ from
/// batch to batch, and preparation, which is equal for all batches of one size, so that a recording
/// (kernels/runtime/device.h) of it serves every step.
class DeviceBatch {
 public:
  virtual ~DeviceBatch() = default;
  /// Copies what the next batch needs from host memory.
  virtual void enqueue_copies(kernels::Stream& stream) = 0;
  /// Produces images() and labels() of `count` samples.
  virtual void enqueue_preparation(kernels::Stream& stream, std::int64_t count) = 0;
  /// Device addresses; the same for every batch.
  virtual const void* images() const = 0;
  virtual const std::int32_t* labels() const = 0;
};

struct BatchLoaderSpec {
  const data::Dataset& dataset;  ///< must outlive the loader
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  std::int64_t batch_size = 64;
  std::int64_t window = 0;                     ///< as data::LoaderSpec
  kernels::DType dtype = kernels::DType::f32;  ///< of the images on the device
  data::NormalizeSpec normalize = {};
};

/// A rank's batches, epoch by epoch, in the order of its sampler. The trainer calls begin_epoch and next; TrainStep
/// takes the batch.
class BatchLoader : public DeviceBatch {
 public:
  struct Next {
    std::int64_t position = 0;  ///< of its first sample in the order
    std::int64_t count = 0;
    std::chrono::nanoseconds data_wait{0};  ///< how long next() blocked
  };

  /// Begins an epoch of these samples of the data set, at `position` in the order. All batches of the last epoch must
  /// have been taken, and the steps that use them be done.
  virtual void begin_epoch(kernels::Stream& stream, std::vector<std::int64_t> order, std::int64_t position) = 0;
  /// Advances to the next batch, which the next enqueue_copies and enqueue_preparation bring; nullopt at the epoch's
  /// end.
  ///
  /// Errors    Error if the deadline passes; errors of reading samples.
  virtual std::optional<Next> next(Deadline deadline) = 0;

 protected:
  /// Errors    InvalidArgument if `position` is outside the order.
  static void check_position(std::span<const std::int64_t> order, std::int64_t position) {
    check(position >= 0 && position <= std::ssize(order), "an epoch begins outside its order");
  }
};

}  // namespace gradring::train
