// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/augmenter.h"
#include "data/loader/normalize.h"
#include "kernels/runtime/device.h"

namespace gradring::data {

/// Memory of one batch: filled by the loader's threads, read by the caller, never by both.
struct BatchSlot {
  kernels::Buffer images;          ///< f32, NHWC
  kernels::Buffer labels;          ///< i32
  kernels::Buffer labels_b = {};   ///< i32: second labels, only with mixup or cutmix
  kernels::Buffer weights_b = {};  ///< f32: theirs, likewise
};

/// Fills batches, one after the other, by the calling thread and further ones, which share the samples of a batch.
///
/// Threads   one caller; `threads` - 1 threads of its own read the dataset, too.
/// Errors    InvalidArgument if `threads` is below 1, or as Augmenter.
/// Numerics  a sample has the same bits whichever thread writes it.
/// Cost      per sample, reads its bytes and writes four times as many; prefetches the next samples.
class BatchFiller {
 public:
  /// All must outlive it, also the table of lambdas.
  BatchFiller(const Dataset& dataset, const Normalize& normalize, const EpochAugmentation& augmentation,
              int threads = 1);

  /// Copies the samples `indices`, augmented and normalised, to the front of a slot.
  ///
  /// Returns   false if it was stopped before the end.
  /// Errors    InvalidArgument for an index outside the dataset; what the dataset throws, in any thread.
  bool fill(std::span<const std::int64_t> indices, BatchSlot& slot, const std::stop_token& stop = {});

 private:
  /// The batch that is filled. Threads take parts of it, `begin` to `begin + part`.
  struct Job {
    std::span<const std::int64_t> indices;
    BatchSlot* slot = nullptr;
    std::stop_token stop;
    std::size_t part = 1;
    std::size_t begin = 0;  ///< of the next part
    int filling = 0;        ///< parts that threads are filling
    std::exception_ptr error;
  };

  bool has_part() const { return job_.begin < job_.indices.size() && !job_.error && !job_.stop.stop_requested(); }
  /// Fills parts until there are no more. `lock` is held when it is called, and when it returns.
  void fill_parts(Augmenter& augmenter, std::unique_lock<std::mutex>& lock);
  void fill_part(Augmenter& augmenter, const Job& job) const;
  void help(Augmenter& augmenter, const std::stop_token& stop);

  const Dataset& dataset_;
  const bool mixes_;
  std::vector<Augmenter> augmenters_;  // one for each thread
  std::mutex mutex_;
  std::condition_variable_any part_ready_, filled_;
  Job job_;
  std::vector<std::jthread> helpers_;  // last: they stop and join before the members they use are destroyed
};

}  // namespace gradring::data
