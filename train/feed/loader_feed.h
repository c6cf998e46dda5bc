// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>

#include "data/datasets/dataset.h"
#include "data/loader/loader.h"
#include "train/feed/batch_feed.h"
#include "train/feed/loaded_batch.h"

namespace gradring::train {

/// What a feed is made of.
struct FeedSpec {
  const data::Dataset& dataset;  ///< must outlive the feed
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  std::int64_t batch_size = 64;
  std::int64_t window = 0;                     ///< as data::LoaderSpec
  kernels::DType dtype = kernels::DType::f32;  ///< of the images on the device
  data::NormalizeSpec normalize = {};
};

/// Batches made ahead of time by a loader's thread, in pinned memory, and copied: for data sets of any size.
class LoaderFeed final : public BatchFeed {
 public:
  explicit LoaderFeed(const FeedSpec& spec);

  void begin_epoch(kernels::Stream& stream, std::vector<std::int64_t> order, std::int64_t position) override;
  std::optional<Next> next(Deadline deadline) override;
  void enqueue_copies(kernels::Stream& stream) override;
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override {
    batch_.enqueue_preparation(stream, count);
  }
  const void* images() const override { return batch_.images(); }
  const std::int32_t* labels() const override { return batch_.labels(); }

 private:
  /// A batch that the stream may still be copying.
  struct Lent {
    data::Batch batch;
    std::unique_ptr<kernels::Event> copied;
  };
  void give_back(std::size_t at_most, Deadline deadline);

  FeedSpec spec_;
  LoadedBatch batch_;
  std::int64_t first_ = 0;                // position in the epoch at which the loader began
  std::unique_ptr<data::Loader> loader_;  // of this epoch
  std::deque<Lent> lent_;                 // behind the loader, which must outlive them
};

}  // namespace gradring::train
