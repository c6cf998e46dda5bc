// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "kernels/runtime/error.h"

namespace gradring::data {

/// What every sampler asks of its spec.
///
/// Errors    InvalidArgument; for a rank outside the world in PyTorch's own words, which people search for.
inline void check_rank(std::int64_t samples, int rank, int world_size) {
  check(samples >= 0, "a data set cannot hold " + std::to_string(samples) + " samples");
  check(world_size >= 1, "a world of " + std::to_string(world_size) + " ranks: there must be one at least");
  check(rank >= 0 && rank < world_size, "Invalid rank " + std::to_string(rank) +
                                            ", rank should be in the interval [0, " + std::to_string(world_size - 1) +
                                            "]");
}

}  // namespace gradring::data
