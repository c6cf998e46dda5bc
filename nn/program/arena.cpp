// SPDX-License-Identifier: Apache-2.0
#include "nn/program/arena.h"

#include <numeric>

#include "kernels/base/error.h"

namespace gradring::nn {
namespace {

constexpr int kUnplaced = -1;

std::size_t rounded_up(std::size_t value, std::size_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

ArenaLayout::ArenaLayout(std::span<const Parameter> parameters, std::span<const std::vector<int>> buckets,
                         std::size_t padding, std::size_t piggyback)
    : parameters_(parameters.size()), bucket_of_(parameters.size(), kUnplaced) {
  check(padding > 0, "the padding of an arena is 0 elements, expected 1 or more");
  check(!buckets.empty(), "an arena has no buckets, expected 1 or more");
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const std::size_t begin = elements_;
    for (int index : buckets[b]) {
      const auto i = static_cast<std::size_t>(index);
      check(i < parameters.size() && bucket_of_[i] == kUnplaced, [&] {
        return "bucket " + std::to_string(b) + " lists parameter " + std::to_string(index) +
               ", which does not exist or is in a bucket already";
      });
      parameters_[i] = {elements_, static_cast<std::size_t>(parameters[i].shape.elements())};
      bucket_of_[i] = static_cast<int>(b);
      elements_ = rounded_up(elements_ + parameters_[i].elements, kAlignment);
    }
    if (b + 1 == buckets.size()) {
      piggyback_ = {elements_, piggyback};
      elements_ += piggyback;
    }
    elements_ = rounded_up(elements_, std::lcm(padding, kAlignment));
    buckets_.push_back({begin, elements_ - begin});
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (bucket_of_[i] != kUnplaced) continue;
    check(parameters[i].frozen, [&] { return parameters[i].name + " is in no bucket"; });
    parameters_[i] = {frozen_elements_, static_cast<std::size_t>(parameters[i].shape.elements())};
    frozen_elements_ = rounded_up(frozen_elements_ + parameters_[i].elements, kAlignment);
  }
}

Gradients gradients_in(const Arena& arena) {
  return {.layout = arena.layout,
          .buckets = arena.layout.each_bucket([&](int bucket) { return arena.bucket(bucket).data(); }),
          .piggyback = arena.piggyback().data()};
}

Weights weights_at(const ArenaLayout& layout, kernels::DType dtype, const void* data) {
  const auto* const bytes = static_cast<const std::byte*>(data);
  const auto begin_of = [&](int bucket) { return bytes + layout.bucket(bucket).offset * kernels::size_of(dtype); };
  return {.layout = layout,
          .dtype = dtype,
          .buckets = layout.each_bucket(begin_of),
          .frozen = bytes + layout.elements() * kernels::size_of(dtype)};
}

}  // namespace gradring::nn
