// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/runtime/stream.h"

namespace gradring::train {

/// Puts a batch on the device, in the type that layers compute in, in two parts: what differs from batch to batch, and what
/// is the same for all, so that a recording of the second (kernels/runtime/recording.h) can stand for every step.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Copies from the host's memory what the next batch needs from there.
  virtual void enqueue_copies(kernels::Stream& stream) = 0;
  /// Makes images() and labels() of it, for a batch of `count` samples.
  virtual void enqueue_preparation(kernels::Stream& stream, std::int64_t count) = 0;
  /// Where they lie on the device; the same addresses for every batch.
  virtual const void* images() const = 0;
  virtual const std::int32_t* labels() const = 0;
};

}  // namespace gradring::train
