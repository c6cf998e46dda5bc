// SPDX-License-Identifier: Apache-2.0
#include "data/loader/fill_batch.h"

#include <cstddef>

namespace gradring::data {
namespace {

/// How many samples ahead memory is asked for: one would come too late, many would be evicted before they are read.
constexpr std::size_t kAhead = 3;
constexpr std::size_t kCacheLine = 64;

void prefetch(std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); i += kCacheLine) __builtin_prefetch(bytes.data() + i);
}

}  // namespace

bool fill_batch(const Dataset& dataset, const Normalize& normalize, std::span<const std::int64_t> indices,
                BatchSlot& slot, const std::stop_token& stop) {
  const auto sample_elements = static_cast<std::size_t>(dataset.shape().elements());
  const std::span images(slot.images.as<float>(), indices.size() * sample_elements);
  const std::span labels(slot.labels.as<std::int32_t>(), indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (stop.stop_requested()) return false;
    if (i + kAhead < indices.size()) prefetch(dataset.pixels(indices[i + kAhead]));
    const Sample sample = dataset.get(indices[i]);
    normalize.apply(sample.pixels, images.subspan(i * sample_elements, sample_elements));
    labels[i] = sample.label;
  }
  return true;
}

}  // namespace gradring::data
