// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "kernels/runtime/deadline.h"
#include "kernels/runtime/error.h"
#include "train/feed/batch_source.h"

namespace gradring::train {

/// A rank's batches, epoch by epoch, in the order of its sampler: what the trainer drives, and its steps take from.
class BatchFeed : public BatchSource {
 public:
  struct Next {
    std::int64_t position = 0;  ///< of its first sample in the order
    std::int64_t count = 0;
    std::chrono::nanoseconds data_wait{0};  ///< how long next() blocked
  };

  /// Starts anew with these samples of the data set, from `position` in the order on. The batches of the epoch before must
  /// have been taken, and the steps that use them be done.
  virtual void begin_epoch(kernels::Stream& stream, std::vector<std::int64_t> order, std::int64_t position) = 0;
  /// Goes on to the next batch, which the next enqueue_copies and enqueue_preparation bring; nothing at the epoch's end.
  ///
  /// Errors    Error if the deadline passes first; what reading the samples throws.
  virtual std::optional<Next> next(Deadline deadline) = 0;

 protected:
  /// Errors    InvalidArgument if an order has no such position.
  static void check_position(std::span<const std::int64_t> order, std::int64_t position) {
    check(position >= 0 && position <= std::ssize(order), "an epoch cannot begin behind its order's end");
  }
};

}  // namespace gradring::train
