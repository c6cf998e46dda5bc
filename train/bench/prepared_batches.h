// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/batch.h"
#include "kernels/runtime/device.h"

namespace gradring::train::bench {

/// A few batches of a data set's first samples, made once and lent again and again: training without a loader.
class PreparedBatches {
 public:
  /// Errors    InvalidArgument if batch_size is below 1 or above the data set's size.
  PreparedBatches(const data::Dataset& dataset, kernels::Device& device, std::int64_t batch_size);

  const data::Batch& next() { return batches_[next_++ % batches_.size()]; }

 private:
  /// Keeps the memory here.
  class Owner final : public data::BatchOwner {
   public:
    void give_back(data::BatchSlot&) noexcept override {}
  };

  Owner owner_;
  std::vector<data::BatchSlot> slots_;
  std::vector<data::Batch> batches_;
  std::size_t next_ = 0;
};

}  // namespace gradring::train::bench
