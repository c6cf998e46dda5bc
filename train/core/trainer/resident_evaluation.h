// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "comm/process_group.h"
#include "data/datasets/dataset.h"
#include "data/loader/normalize.h"
#include "kernels/ops/kernel_set.h"
#include "kernels/ops/tally/tally.h"
#include "kernels/runtime/device.h"
#include "nn/program/program.h"
#include "train/core/input_pipeline/batch_loader.h"
#include "train/core/trainer/evaluation.h"

namespace gradring::train {

/// This rank's samples of a data set in device memory, as bytes, and batches of them.
///
/// Memory    samples of the rank * (elements of a sample + 12) bytes, and a batch.
class ResidentShard {
 public:
  /// `spec.dataset`: the whole, which is read here only. Copies the rank's samples to the device; blocks.
  ///
  /// Errors    DeviceError if they do not fit there.
  ResidentShard(const BatchLoaderSpec& spec, const comm::ProcessGroup& group, kernels::Stream& stream,
                Deadline deadline);

  BatchLoader& batches() { return *batches_; }
  std::int64_t samples() const { return std::ssize(order_); }
  /// Begins a pass over all samples. Everything enqueued in the pass before must be done.
  void begin(kernels::Stream& stream) { batches_->begin_epoch(stream, {.order = order_}); }

 private:
  std::vector<std::int64_t> order_;
  std::unique_ptr<ResidentBatchLoader> batches_;
};

/// The sums of an evaluation on the device: the loss in f64, then the counts of kernels::tally.
constexpr std::size_t evaluation_sums_bytes(std::int64_t classes) {
  return sizeof(double) + static_cast<std::size_t>(kernels::tally::counts_of(classes)) * sizeof(std::int64_t);
}

/// Evaluates a data set that is resident on the device, again and again. Samples, logits and sums stay there: the host
/// enqueues all batches, as recordings of one batch where the device has graphs, and reads the sums once.
///
/// Numerics  the results of `evaluate`, to the last bit: batches are of the same samples and normalized alike, their
///           losses are added in f64 in the same order, counts are exact.
/// Threads   one. Parts must outlive it, but the data set.
/// Example   tests/train/core/trainer/resident_evaluation_test.cpp
class ResidentEvaluation {
 public:
  struct Parts {
    kernels::Device& device;
    kernels::Stream& stream;
    const kernels::KernelSet& kernels;
    comm::ProcessGroup& group;
    nn::Program& program;          ///< in evaluation mode
    const data::Dataset& dataset;  ///< read by the constructor only
    data::NormalizeSpec normalize = {};
    bool recorded = false;  ///< batches of one size are recorded once and launched as one (a CUDA graph)
  };
  /// Errors    DeviceError if the samples do not fit on the device.
  explicit ResidentEvaluation(const Parts& parts);

  /// Evaluates every sample exactly once, over all ranks. Collective.
  ///
  /// Errors    comm::CommError, DeviceError.
  Evaluation run(const nn::Weights& weights);

  /// Batches that may be enqueued after the oldest one that is not done: each wait of the host is for one batch.
  static constexpr std::size_t kMostAhead = 32;

 private:
  /// A recording holds the addresses of the weights.
  struct OfWeights {
    nn::Weights weights;
    std::map<std::int64_t, std::unique_ptr<kernels::Recording>> of_count;
  };

  void enqueue_batch(const nn::Weights& weights, std::int64_t count);
  void enqueue_recorded(OfWeights& recordings, std::int64_t count);
  OfWeights& recordings_of(const nn::Weights& weights);

  Parts parts_;
  std::int64_t classes_;
  kernels::tally::Variant tally_;
  ResidentShard shard_;
  kernels::Buffer loss_, correct_;  // of a batch
  kernels::Buffer sums_;
  kernels::Buffer host_sums_;        // pinned
  std::set<std::int64_t> seen_;      // sizes that ran once without recording: libraries initialize in a first run
  std::list<OfWeights> recordings_;  // newest last
};

}  // namespace gradring::train
