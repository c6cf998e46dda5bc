// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/runtime/buffer.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

/// Memory of one batch: filled by the loader's thread, read by the caller, never by both.
struct BatchSlot {
  kernels::Buffer images;  ///< f32, NHWC
  kernels::Buffer labels;  ///< i32
};

/// Takes a slot back when the caller is done with it.
class BatchOwner {
 public:
  virtual ~BatchOwner() = default;
  virtual void give_back(BatchSlot& slot) noexcept = 0;
};

/// A batch that a loader lends; destroying it gives the memory back. Move-only.
class Batch {
 public:
  struct Contents {
    kernels::Shape shape;                   ///< [count, height, width, channels]
    std::int64_t position = 0;              ///< of the first sample in the loader's indices
    std::chrono::nanoseconds data_wait{0};  ///< how long next() blocked for this batch
  };

  Batch(BatchSlot& slot, BatchOwner& owner, Contents contents) : slot_(&slot, GiveBack{&owner}), contents_(contents) {}

  const kernels::Shape& shape() const { return contents_.shape; }
  std::int64_t count() const { return contents_.shape[0]; }
  std::int64_t position() const { return contents_.position; }
  std::chrono::nanoseconds data_wait() const { return contents_.data_wait; }

  std::span<const float> images() const {
    return {slot_->images.as<float>(), static_cast<std::size_t>(contents_.shape.elements())};
  }
  std::span<const std::int32_t> labels() const {
    return {slot_->labels.as<std::int32_t>(), static_cast<std::size_t>(count())};
  }

 private:
  struct GiveBack {
    BatchOwner* owner;
    void operator()(BatchSlot* slot) const noexcept { owner->give_back(*slot); }
  };
  std::unique_ptr<BatchSlot, GiveBack> slot_;
  Contents contents_;
};

}  // namespace gradring::data
