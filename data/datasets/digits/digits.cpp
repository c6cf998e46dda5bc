// SPDX-License-Identifier: Apache-2.0
#include "data/datasets/digits/digits.h"

#include <span>
#include <utility>

#include "data/datasets/digits/digit_generator.h"
#include "data/datasets/in_memory_dataset.h"

namespace gradring::data {
namespace {

constexpr std::uint64_t kTrainSeed = 0x7261696e;
constexpr std::uint64_t kTestSeed = 0x74657374;

}  // namespace

std::unique_ptr<Dataset> make_digits(Split split) {
  const DigitGenerator generator(split == Split::train ? kTrainSeed : kTestSeed);
  const auto samples = static_cast<std::size_t>(split == Split::train ? kDigitsTrainSamples : kDigitsTestSamples);
  InMemoryDataset::Contents contents{.name = "digits",
                                     .shape = {Canvas::kSide, Canvas::kSide, 1},
                                     .classes = 10,
                                     .pixels = std::vector<std::uint8_t>(samples * Canvas::kPixels),
                                     .labels = std::vector<std::uint8_t>(samples)};
  for (std::size_t i = 0; i < samples; ++i) {
    const std::span<std::uint8_t, Canvas::kPixels> pixels(contents.pixels.data() + i * Canvas::kPixels,
                                                          Canvas::kPixels);
    contents.labels[i] = static_cast<std::uint8_t>(generator.draw(i, pixels));
  }
  return std::make_unique<InMemoryDataset>(std::move(contents));
}

}  // namespace gradring::data
