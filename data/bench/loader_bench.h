// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "data/augment/augmentation.h"
#include "data/datasets/dataset.h"
#include "kernels/runtime/device.h"

namespace gradring::data::bench {

/// What `gradring bench loader` measures: epochs of batches from a dataset in memory, without training. The samples of
/// each epoch are in an order of their own.
struct LoaderBenchSpec {
  std::int64_t batch_size = 256;  ///< in samples; the last batch of an epoch may be smaller
  int epochs = 11;                ///< that are measured, after one to warm up
  int depth = 4;                  ///< batches that the loader fills ahead
  std::uint64_t seed = 0;         ///< of the orders
  int threads = 1;                ///< of the loader; filling has one
  Augmentation augment = {};      ///< of both
};

/// Seconds of one epoch: wall-clock time, and CPU time of all threads together.
struct EpochTime {
  std::chrono::duration<double> wall{};
  std::chrono::duration<double> cpu{};  ///< more than wall where threads run at the same time
};

/// Fills every batch of shuffled epochs on the calling thread, rotating over `depth` slots.
///
/// Errors    InvalidArgument if the batch size, the depth or the number of epochs is below 1.
std::vector<EpochTime> time_filling(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

/// Takes every batch of shuffled epochs from a Loader and returns it at once: includes the thread, the handover and the
/// construction of the loader.
///
/// Errors    as time_filling; Error if a batch takes longer than a minute.
/// Example   tests/data/bench/loader_bench_test.cpp
std::vector<EpochTime> time_loader(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

}  // namespace gradring::data::bench
