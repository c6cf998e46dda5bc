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
  int depth = 4;  ///< the loader's
  std::uint64_t seed = 0;
};

/// What one epoch took: on the clock, and of all processors together.
struct EpochTime {
  std::chrono::duration<double> wall{};
  std::chrono::duration<double> cpu{};
};

/// Fills every batch of shuffled epochs on the calling thread alone, into as many slots in turn as a loader has.
///
/// Errors    InvalidArgument if the batch size, the depth or the number of epochs is below 1.
std::vector<EpochTime> time_filling(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

/// Takes every batch of shuffled epochs from a Loader and gives it back at once: its thread, the hand-over and the making of
/// the loader included.
std::vector<EpochTime> time_loader(const Dataset& dataset, kernels::Device& device, const LoaderBenchSpec& spec);

}  // namespace gradring::data::bench
