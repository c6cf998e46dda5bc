// SPDX-License-Identifier: Apache-2.0
#include "train/core/trainer/test_views.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "kernels/base/error.h"

namespace gradring::train {
namespace {

constexpr auto kNone = std::to_array<TestView>({{.weight = 1}});
constexpr auto kFlip = std::to_array<TestView>({{.weight = 0.5}, {.weight = 0.5, .mirrored = true}});
constexpr auto kAirbench = std::to_array<TestView>({{.weight = 0.25},
                                                    {.weight = 0.25, .mirrored = true},
                                                    {.weight = 0.125, .shift = -1},
                                                    {.weight = 0.125, .mirrored = true, .shift = -1},
                                                    {.weight = 0.125, .shift = 1},
                                                    {.weight = 0.125, .mirrored = true, .shift = 1}});

/// torch.nn.functional.pad(mode="reflect"): the edge itself is not repeated.
std::int64_t reflected(std::int64_t i, std::int64_t size) { return i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i; }

}  // namespace

std::span<const TestView> test_views(Tta tta) {
  switch (tta) {
    case Tta::flip: return kFlip;
    case Tta::airbench: return kAirbench;
    case Tta::none: break;
  }
  return kNone;
}

void write_view(const TestView& view, const kernels::Shape& sample, std::span<const float> images, float* to) {
  const std::int64_t height = sample[0], width = sample[1], channels = sample[2];
  check(std::abs(view.shift) < std::min(height, width),
        "images are too small to be shifted for test-time augmentation: use --tta flip or none");
  const std::int64_t rows = std::ssize(images) / (width * channels);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t y = row % height;
    const float* from = images.data() + (row - y + reflected(y + view.shift, height)) * width * channels;
    for (std::int64_t x = 0; x < width; ++x) {
      const std::int64_t seen = reflected((view.mirrored ? width - 1 - x : x) + view.shift, width);
      to = std::copy_n(from + seen * channels, channels, to);
    }
  }
}

}  // namespace gradring::train
