// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>

#include "data/loader/loader.h"
#include "train/input_pipeline/batch_loader.h"

namespace gradring::train {

/// A batch of pinned host memory, copied to the device and rounded there.
class CopiedBatch final : public DeviceBatch {
 public:
  /// Allocates room for spec.batch_size samples.
  explicit CopiedBatch(const BatchLoaderSpec& spec);

  /// Selects the next batch. It must live until the stream has copied it.
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
  kernels::Buffer images_;   // f32, as in host memory
  kernels::Buffer rounded_;  // empty in f32
  kernels::Buffer labels_;
};

/// Batches that data::Loader's thread prepares ahead of time in pinned memory: for data sets of any size.
class HostBatchLoader final : public BatchLoader {
 public:
  explicit HostBatchLoader(const BatchLoaderSpec& spec) : spec_(spec), batch_(spec) {}

  void begin_epoch(kernels::Stream& stream, std::vector<std::int64_t> order, std::int64_t position) override;
  std::optional<Next> next(Deadline deadline) override;
  void enqueue_copies(kernels::Stream& stream) override;
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override {
    batch_.enqueue_preparation(stream, count);
  }
  const void* images() const override { return batch_.images(); }
  const std::int32_t* labels() const override { return batch_.labels(); }

 private:
  /// A host batch that the stream may still be copying.
  struct InFlight {
    data::Batch batch;
    std::unique_ptr<kernels::Event> copied;
  };
  void release_copied(std::size_t at_most, Deadline deadline);

  BatchLoaderSpec spec_;
  CopiedBatch batch_;
  std::int64_t first_ = 0;                // position in the epoch at which the loader began
  std::unique_ptr<data::Loader> loader_;  // of this epoch
  std::deque<InFlight> in_flight_;        // after loader_, which must outlive them
};

}  // namespace gradring::train
