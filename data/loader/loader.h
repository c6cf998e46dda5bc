// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/augmenter.h"
#include "data/loader/batch_filler.h"
#include "data/loader/normalize.h"
#include "data/loader/sampler.h"
#include "kernels/base/deadline.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/shape.h"
#include "kernels/runtime/trace_track.h"

namespace gradring::data {

/// Receives a slot when the caller is done with it.
class BatchOwner {
 public:
  virtual ~BatchOwner() = default;
  virtual void give_back(BatchSlot& slot) noexcept = 0;
};

/// A batch in a loader's memory; destroying it returns the memory. Move-only.
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
  /// Of mixtures; without any, empty.
  std::span<const std::int32_t> labels_b() const {
    return {slot_->labels_b.as<std::int32_t>(), slot_->labels_b.size() > 0 ? static_cast<std::size_t>(count()) : 0};
  }
  std::span<const float> weights_b() const { return {slot_->weights_b.as<float>(), labels_b().size()}; }

 private:
  struct GiveBack {
    BatchOwner* owner;
    void operator()(BatchSlot* slot) const noexcept { owner->give_back(*slot); }
  };
  std::unique_ptr<BatchSlot, GiveBack> slot_;
  Contents contents_;
};

struct LoaderSpec {
  std::vector<std::int64_t> indices = {};  ///< visits of one rank in their order, or the rest after a resume
  std::int64_t batch_size = 64;
  std::int64_t window = 0;  ///< samples per optimizer step: no batch crosses into the next step; 0: no limit
  NormalizeSpec normalize = {};
  EpochAugmentation augmentation = {};
  int threads = 1;                       ///< that share the samples of a batch
  int depth = 4;                         ///< batches that exist at once: being filled, ready, or held by the caller
  kernels::TraceTrack* trace = nullptr;  ///< of the loader's thread: batches that it prepares; null: none
};

/// Prepares the batches of an epoch ahead of time, on its own thread or several, in pinned memory.
///
/// Order     batches come in the order of `indices`; the last one may be short.
/// Threads   one caller; the loader's threads use `dataset` and `device`, too, so they must outlive it.
/// Errors    InvalidArgument if batch_size, depth or threads is below 1, or the transform does not fit the dataset's
///           channels, or the augmentation its images.
///           next() throws errors of the loader's thread in place of the batch that failed, and again after.
/// Cost      memory: depth x batch_size samples as f32. Destruction waits for at most one sample.
/// Example   tests/data/loader/loader_test.cpp
class Loader {
 public:
  Loader(const Dataset& dataset, kernels::Device& device, LoaderSpec spec);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, or nothing at the end. Its memory is reused after the Batch is destroyed, so a caller that copies
  /// asynchronously keeps it until the copy is done. No Batch may outlive its loader.
  ///
  /// Errors    InvalidArgument if the caller still holds all `depth` batches; Error if the deadline passes first.
  std::optional<Batch> next(Deadline deadline);

  /// Of the whole epoch.
  BatchGeometry geometry() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace gradring::data
