// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "data/datasets/dataset.h"
#include "kernels/runtime/device.h"

namespace gradring::data::bench {

struct LoaderBenchSpec {
  std::int64_t batch_size = 256;
  int epochs = 11;
  int depth = 4;  ///< of the loader
  std::uint64_t seed = 0;
};

/// Time of one epoch: wall clock, and CPU time of all threads.
struct EpochTime {
  std::chrono::duration<double> wall{};
  std::chrono::duration<double> cpu{};
};

/// Fills every batch of shuffled epochs on the calling thread, rotating over `depth` slots.
///
/// Errors    InvalidArgument if the batch size, the depth or the number of epochs is below 1.
std::vector<EpochTime> time_filling(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

/// Takes every batch of shuffled epochs from a Loader and returns it at once: includes the thread, the handover and the
/// construction of the loader.
std::vector<EpochTime> time_loader(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

}  // namespace gradring::data::bench
