// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "kernels/runtime/shape.h"
#include "train/core/config/choices.h"

namespace gradring::train {

/// An image as an evaluation looks at it: shifted along the diagonal, where reflecting padding enters, then mirrored.
struct TestView {
  double weight = 1;       ///< of its logits in their mean
  bool mirrored = false;   ///< left to right
  std::int64_t shift = 0;  ///< pixels: row y and column x show those of y + shift and x + shift

  bool is_identity() const { return !mirrored && shift == 0; }
};

/// The views of a test-time augmentation, the image itself first; their weights sum to 1.
///
///   none      the image
///   flip      and its mirror image, with equal weights
///   airbench  half of `flip`; a quarter each of the same of the image shifted by one pixel, up and left, or down and
///             right
///
/// Source    Keller Jordan, airbench94_muon.py (2025), infer_mirror_translate.
/// Example   tests/train/core/trainer/test_views_test.cpp
std::span<const TestView> test_views(Tta tta);

/// Writes the view of each image of a batch: the value at row y, column x of an image is that at
///
///   row     reflected(y + shift)
///   column  reflected((mirrored ? width - 1 - x : x) + shift)      reflected(-1) = 1, reflected(n) = n - 2
///
/// Shapes    images, to: [samples, height, width, channels], with `sample` the last three.
/// Aliasing  none.
/// Cost      reads and writes each value once.
/// Errors    InvalidArgument if the shift is not smaller than height and width, as reflecting padding requires.
void write_view(const TestView& view, const kernels::Shape& sample, std::span<const float> images, float* to);

}  // namespace gradring::train
