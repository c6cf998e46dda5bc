// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/loader/sampler.h"
#include "train/input_pipeline/batch_loader.h"

namespace gradring::train {

/// Batches of a data set that is resident on the device as bytes: a kernel gathers, normalizes and converts them, with
/// the same bits as HostBatchLoader. Nothing is copied within an epoch, so one recording serves all steps of a size.
///
/// Memory    dataset.size() * (elements of a sample + 12) bytes on the device, besides a batch.
class ResidentBatchLoader final : public BatchLoader {
 public:
  /// Copies the data set to the device; blocks.
  ///
  /// Errors    DeviceError if it does not fit there.
  ResidentBatchLoader(const BatchLoaderSpec& spec, kernels::Stream& stream, Deadline deadline);

  void begin_epoch(kernels::Stream& stream, std::vector<std::int64_t> order, std::int64_t position) override;
  std::optional<Next> next(Deadline deadline) override;
  void enqueue_copies(kernels::Stream&) override {}
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override;
  const void* images() const override { return images_.data(); }
  const std::int32_t* labels() const override { return labels_.as<std::int32_t>(); }

 private:
  void upload(const data::Dataset& dataset, kernels::Stream& stream, Deadline deadline);

  kernels::DType dtype_;
  kernels::gather_batch::Variant gather_;
  std::int64_t samples_;
  std::int64_t sample_elements_;
  std::int64_t channels_;
  data::BatchGeometry geometry_;
  std::int64_t first_position_ = 0;  // of the epoch, in the order
  std::int64_t batch_ = 0;           // the next one

  kernels::Buffer pixels_;        // u8, [samples, elements]
  kernels::Buffer pixel_labels_;  // i32, [samples]
  kernels::Buffer statistics_;    // f32: means, then standard deviations, of each channel
  kernels::Buffer order_;         // i64, [samples]
  kernels::Buffer first_;         // i64: position in the order on the device
  kernels::Buffer host_order_;    // pinned: the order of this epoch, then its start
  kernels::Buffer images_;
  kernels::Buffer labels_;
};

}  // namespace gradring::train
