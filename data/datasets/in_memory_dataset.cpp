// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/in_memory_dataset.h"

#include <algorithm>
#include <utility>

#include "kernels/runtime/error.h"

namespace gradring::data {

InMemoryDataset::InMemoryDataset(Contents contents)
    : contents_(std::move(contents)), sample_bytes_(static_cast<std::size_t>(contents_.shape.elements())) {
  check(contents_.shape.rank() == 3, "a sample's shape is height, width, channels, not " + contents_.shape.to_string());
  check(contents_.pixels.size() == contents_.labels.size() * sample_bytes_,
        std::to_string(contents_.pixels.size()) + " pixels are not " + std::to_string(contents_.labels.size()) +
            " samples of " + contents_.shape.to_string());
  const int largest =
      contents_.labels.empty() ? -1 : *std::max_element(contents_.labels.begin(), contents_.labels.end());
  check(largest < contents_.classes,
        "label " + std::to_string(largest) + " is not one of " + std::to_string(contents_.classes) + " classes");
}

std::span<const std::uint8_t> InMemoryDataset::pixels(std::int64_t index) const {
  check_index(index);
  return std::span(contents_.pixels).subspan(static_cast<std::size_t>(index) * sample_bytes_, sample_bytes_);
}

int InMemoryDataset::label(std::int64_t index) const {
  check_index(index);
  return contents_.labels[static_cast<std::size_t>(index)];
}

void InMemoryDataset::check_index(std::int64_t index) const {
  if (index < 0 || index >= size()) [[unlikely]]
    throw InvalidArgument(contents_.name + " has no sample " + std::to_string(index) + ": it holds 0 to " +
                          std::to_string(size() - 1));
}

}  // namespace gradring::data
