// SPDX-License-Identifier: Apache-2.0
#include "train/parallel/buckets.h"

#include <algorithm>

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

int buckets_at_once(const nn::ArenaLayout& layout, std::span<const std::vector<int>> groups) {
  int most = 1;
  for (const std::vector<int>& group : groups) {
    if (group.empty()) continue;
    const auto [least, largest] =
        std::ranges::minmax(group, {}, [&layout](int parameter) { return layout.bucket_of(parameter); });
    most = std::max(most, layout.bucket_of(largest) - layout.bucket_of(least) + 1);
  }
  return most;
}

}  // namespace gradring::train
