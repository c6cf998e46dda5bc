// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/augment/lambdas.h"
#include "data/datasets/dataset.h"
#include "data/loader/loader.h"
#include "data/loader/normalize.h"
#include "data/loader/sampler.h"
#include "kernels/base/deadline.h"
#include "kernels/base/error.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/runtime/device.h"
#include "kernels/runtime/trace_track.h"

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
  virtual kernels::DType images_dtype() const = 0;
  virtual const std::int32_t* labels() const = 0;
  /// Of mixtures (data::Augmentation::mixes), with their weights; null: images have one label.
  virtual const std::int32_t* labels_b() const = 0;
  virtual const float* weights_b() const = 0;
};

struct BatchLoaderSpec {
  const data::Dataset& dataset;  ///< must outlive the loader
  kernels::Device& device;
  const kernels::KernelSet& kernels;
  std::int64_t batch_size = 64;
  std::int64_t window = 0;                     ///< as data::LoaderSpec
  kernels::DType dtype = kernels::DType::f32;  ///< of the images on the device
  bool keeps_f32 = false;  ///< images that come as f32 stay f32, as the program reads that (nn::Program::reads_f32)
  data::NormalizeSpec normalize = {};
  data::Augmentation augment = {};
  std::uint64_t augment_seed = 0;
  bool repeats_samples = false;          ///< epochs have visits (data::StepSampler::visits)
  int threads = 1;                       ///< of a HostBatchLoader
  kernels::TraceTrack* trace = nullptr;  ///< as data::LoaderSpec
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

  /// The part of an epoch that a sampler deals to this rank (data::StepSampler).
  struct Epoch {
    std::int64_t number = 0;  ///< on which the augmentation depends
    std::vector<std::int64_t> order = {};
    std::int64_t position = 0;              ///< in the order, where the epoch begins
    std::vector<std::int64_t> visits = {};  ///< needed for mixtures, with repeats_samples
  };
  /// Begins an epoch. All batches of the last one must have been taken, and the steps that use them be done.
  virtual void begin_epoch(kernels::Stream& stream, Epoch epoch) = 0;
  /// Advances to the next batch, which the next enqueue_copies and enqueue_preparation bring; nullopt at the epoch's
  /// end.
  ///
  /// Errors    Error if the deadline passes; errors of reading samples.
  virtual std::optional<Next> next(Deadline deadline) = 0;

 protected:
  /// Errors    InvalidArgument if `position` is outside the order.
  static void check_position(const Epoch& epoch) {
    check(epoch.position >= 0 && epoch.position <= std::ssize(epoch.order),
          "the first sample of the epoch is not in its order");
  }
};

/// A batch of pinned host memory, copied to the device and rounded there, unless it may stay f32.
class CopiedBatch final : public DeviceBatch {
 public:
  /// Allocates room for spec.batch_size samples.
  explicit CopiedBatch(const BatchLoaderSpec& spec);

  /// Selects the next batch. It must live until the stream has copied it.
  void set(const data::Batch& batch) { batch_ = &batch; }

  void enqueue_copies(kernels::Stream& stream) override;
  /// Copies these images, in pinned memory, in place of the batch's.
  void enqueue_images(kernels::Stream& stream, std::span<const float> images);
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override;
  const void* images() const override { return rounds() ? rounded_.data() : images_.data(); }
  kernels::DType images_dtype() const override { return dtype_; }
  const std::int32_t* labels() const override { return labels_.as<std::int32_t>(); }
  const std::int32_t* labels_b() const override { return labels_b_.as<std::int32_t>(); }
  const float* weights_b() const override { return weights_b_.as<float>(); }

 private:
  bool rounds() const { return dtype_ != kernels::DType::f32; }

  kernels::DType dtype_;  // of images()
  std::size_t sample_elements_;
  kernels::cast::Variant cast_;
  const data::Batch* batch_ = nullptr;
  kernels::Buffer images_;   // f32, as in host memory
  kernels::Buffer rounded_;  // empty in f32
  kernels::Buffer labels_;
  kernels::Buffer labels_b_, weights_b_;  // empty without mixtures
};

/// Batches that data::Loader's thread prepares ahead of time in pinned memory: for data sets of any size.
class HostBatchLoader final : public BatchLoader {
 public:
  explicit HostBatchLoader(const BatchLoaderSpec& spec)
      : spec_(spec), lambdas_(data::lambdas_of(spec.augment)), batch_(spec) {}

  void begin_epoch(kernels::Stream& stream, Epoch epoch) override;
  std::optional<Next> next(Deadline deadline) override;
  void enqueue_copies(kernels::Stream& stream) override;
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override {
    batch_.enqueue_preparation(stream, count);
  }
  /// The batch of the last next(), in host memory until the one after.
  const data::Batch& host_batch() const { return in_flight_.back().batch; }
  /// As CopiedBatch.
  void enqueue_images(kernels::Stream& stream, std::span<const float> images) { batch_.enqueue_images(stream, images); }
  const void* images() const override { return batch_.images(); }
  kernels::DType images_dtype() const override { return batch_.images_dtype(); }
  const std::int32_t* labels() const override { return batch_.labels(); }
  const std::int32_t* labels_b() const override { return batch_.labels_b(); }
  const float* weights_b() const override { return batch_.weights_b(); }

 private:
  /// A host batch that the stream may still be copying.
  struct InFlight {
    data::Batch batch;
    std::unique_ptr<kernels::Event> copied;
  };
  void release_copied(std::size_t at_most, Deadline deadline);

  BatchLoaderSpec spec_;
  std::vector<std::int32_t> lambdas_;
  CopiedBatch batch_;
  std::int64_t first_ = 0;                // position in the epoch at which the loader began
  std::vector<std::int64_t> visits_;      // which the loader reads
  std::unique_ptr<data::Loader> loader_;  // of this epoch
  std::deque<InFlight> in_flight_;        // after loader_, which must outlive them
};

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

  void begin_epoch(kernels::Stream& stream, Epoch epoch) override;
  std::optional<Next> next(Deadline deadline) override;
  void enqueue_copies(kernels::Stream&) override {}
  void enqueue_preparation(kernels::Stream& stream, std::int64_t count) override;
  const void* images() const override { return images_.data(); }
  kernels::DType images_dtype() const override { return dtype_; }
  const std::int32_t* labels() const override { return labels_.as<std::int32_t>(); }
  const std::int32_t* labels_b() const override { return labels_b_.as<std::int32_t>(); }
  const float* weights_b() const override { return weights_b_.as<float>(); }

 private:
  void upload(const data::Dataset& dataset, kernels::Stream& stream, Deadline deadline);
  void prepare_mixtures(const BatchLoaderSpec& spec, kernels::Stream& stream, Deadline deadline);

  kernels::DType dtype_;
  kernels::gather_batch::Variant gather_;
  std::int64_t samples_;
  std::int64_t sample_elements_;
  std::int64_t channels_;
  std::int64_t width_;
  data::Augmentation augment_;
  std::uint64_t augment_seed_;
  data::BatchGeometry geometry_;
  std::int64_t first_position_ = 0;  // of the epoch, in the order
  std::int64_t batch_ = 0;           // the next one

  kernels::Buffer pixels_;        // u8, [samples, elements]
  kernels::Buffer pixel_labels_;  // i32, [samples]
  kernels::Buffer statistics_;    // f32: means, then standard deviations, of each channel
  kernels::Buffer order_;         // i64, [samples]
  kernels::Buffer first_;         // i64: position in the order on the device
  kernels::Buffer epoch_;         // i64: its number on the device
  kernels::Buffer arrivals_;      // as gather_batch::Args; 0
  kernels::Buffer host_order_;    // pinned: the order of this epoch, then its start and its number
  kernels::Buffer lambdas_;      // i32, as data::lambdas_of; this and what follows, but images_: empty without mixtures
  kernels::Buffer visits_;       // i64, [samples]; empty also where samples are not repeated
  kernels::Buffer host_visits_;  // pinned, likewise
  kernels::Buffer images_;
  kernels::Buffer labels_;
  kernels::Buffer labels_b_, weights_b_;
};

}  // namespace gradring::train
