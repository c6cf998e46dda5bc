// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/buckets.h"

namespace gradring::train {

std::vector<std::vector<int>> make_buckets(std::span<const nn::Parameter> parameters, std::span<const int> ready_order,
                                           const BucketLimits& limits) {
  std::vector<std::vector<int>> buckets;
  std::size_t bytes = 0;
  bool open = false;
  for (int index : ready_order) {
    if (!open) {
      buckets.emplace_back();
      bytes = 0;
    }
    buckets.back().push_back(index);
    bytes += static_cast<std::size_t>(parameters[static_cast<std::size_t>(index)].shape.elements()) * sizeof(float);
    open = bytes < (buckets.size() == 1 ? limits.first_bytes : limits.rest_bytes);
  }
  return buckets;
}

}  // namespace gradring::train
