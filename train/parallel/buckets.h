// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "nn/parameter/arena_layout.h"
#include "nn/parameter/parameter.h"

namespace gradring::train {

struct BucketLimits {
  std::size_t first_bytes = 1024 * 1024;      ///< small, so that the first all-reduce starts early
  std::size_t rest_bytes = 25 * 1024 * 1024;  ///< large, so that the others are efficient
};

/// Groups gradients, in the order in which backward finishes them, into buckets that are all-reduced as one: a bucket takes
/// tensors until its bytes reach its limit.
///
/// Returns   indices into `parameters`, bucket by bucket; `ready_order` cut into pieces.
/// Source    torch/csrc/distributed/c10d/reducer.cpp, compute_bucket_assignment_by_size.
std::vector<std::vector<int>> make_buckets(std::span<const nn::Parameter> parameters, std::span<const int> ready_order,
                                           const BucketLimits& limits);

/// Over how many neighbouring buckets the parameters lie that are used at once, at most. `groups` lists those of each plan.
int buckets_at_once(const nn::ArenaLayout& layout, std::span<const std::vector<int>> groups);

}  // namespace gradring::train
