// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "data/datasets/dataset.h"
#include "data/loader/batch.h"
#include "data/loader/batch_geometry.h"
#include "data/transforms/normalize.h"
#include "kernels/runtime/deadline.h"
#include "kernels/runtime/device.h"

namespace gradring::data {

struct LoaderSpec {
  std::vector<std::int64_t> indices = {};  ///< one rank's order, or the rest of it after a resume
  std::int64_t batch_size = 64;
  std::int64_t window = 0;  ///< samples of an optimizer step, none of whose batches reaches into the next; 0: no matter
  NormalizeSpec normalize = {};
  int depth = 4;  ///< batches that exist at once: being filled, ready, or lent to the caller
};

/// Makes the batches of an epoch ahead of time, on a thread of its own, in pinned memory.
///
/// Order     batches come in the order of `indices`, always; the last one may be short.
/// Threads   one caller; `dataset` and `device` are used from the loader's thread too and must outlive it.
/// Errors    InvalidArgument if batch_size or depth is below 1, or the transform does not fit the data set's channels.
///           What goes wrong on the loader's thread is thrown by next() where that batch would have come, and again
///           after.
/// Cost      memory: depth x batch_size samples as f32. Destruction waits for one sample at most.
/// Example   tests/data/loader/loader_test.cpp
class Loader {
 public:
  Loader(const Dataset& dataset, kernels::Device& device, LoaderSpec spec);
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// The next batch, or nothing at the end. It is lent: its memory is filled anew after the Batch is destroyed, so a
  /// caller that copies asynchronously keeps it until the copy is done. No Batch may outlive its loader.
  ///
  /// Errors    InvalidArgument if the caller still holds all `depth` batches; Error if the deadline passes first.
  std::optional<Batch> next(Deadline deadline);

  /// The whole epoch's, known from the start.
  BatchGeometry geometry() const;

 private:
  class Worker;
  std::unique_ptr<Worker> worker_;
};

}  // namespace gradring::data
