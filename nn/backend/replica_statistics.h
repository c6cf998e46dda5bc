// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gradring::nn {

/// What a plan needs of the other replicas of its model, in the middle of a pass: rows of f32. Each replica cuts its
/// batches into shards, and has a row for each of them, also for those without samples. All replicas make the same calls
/// in the same order.
///
/// Threads   one.
class ReplicaStatistics {
 public:
  virtual ~ReplicaStatistics() = default;
  virtual int replicas() const = 0;
  /// Which of them this one is.
  virtual int own() const = 0;
  /// Of a batch: what a program computes at once. With 1 it is the whole batch.
  virtual int shards() const = 0;
  /// Reserves a row of `floats` of each shard of each replica, while plans are made. Returns its number.
  virtual int reserve(std::size_t floats) = 0;
  /// All rows, contiguous, in the order of replicas, and of shards within each; once all plans are made.
  virtual float* rows(int number) const = 0;
  /// Work of the pass enqueued next finds the rows of all replicas; work enqueued before wrote this replica's.
  virtual void enqueue_gather(int number) = 0;
};

}  // namespace gradring::nn
