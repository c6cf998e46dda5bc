// SPDX-License-Identifier: Apache-2.0
#include "nn/parameter/arena_layout.h"

#include <numeric>

#include "kernels/runtime/error.h"

namespace gradring::nn {
namespace {

constexpr int kUnplaced = -1;

std::size_t rounded_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

ArenaLayout::ArenaLayout(std::span<const Parameter> parameters, std::span<const std::vector<int>> buckets,
                         std::size_t padding, std::size_t riders)
    : parameters_(parameters.size()), bucket_of_(parameters.size(), kUnplaced) {
  check(padding > 0, "an arena's padding must be at least one element");
  check(!buckets.empty(), "an arena needs at least one bucket");
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::size_t begin = elements_;
    for (int index : buckets[b]) {
      const auto i = static_cast<std::size_t>(index);
      check(
          i < parameters.size() && bucket_of_[i] == kUnplaced,
          "bucket " + std::to_string(b) + " names parameter " + std::to_string(index) + " that is not there or taken");
      parameters_[i] = {elements_, static_cast<std::size_t>(parameters[i].shape.elements())};
      bucket_of_[i] = static_cast<int>(b);
      elements_ = rounded_up(elements_ + parameters_[i].elements, kAlignment);
    }
    if (b + 1 == buckets.size()) {
      riders_ = {elements_, riders};
      elements_ += riders;
    }
    elements_ = rounded_up(elements_, std::lcm(padding, kAlignment));
    buckets_.push_back({begin, elements_ - begin});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i)
    check(bucket_of_[i] != kUnplaced, parameters[i].name + " is in no bucket");
}

}  // namespace gradring::nn
