// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/ops/gather_batch/draws.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

using kernels::gather_batch::Augmentation;

/// The augmentation of one epoch.
struct EpochAugmentation {
  Augmentation what = {};
  std::uint64_t seed = 0;
  std::int64_t epoch = 0;
};

/// From the text of --augment: a list of flip, flip=alternating, crop=PAD, cutout=SIZE, resized-crop (of 0.08 to 1 of
/// the area, as torchvision's) and resized-crop=MIN:MAX, separated by commas; "none" or "": no augmentation. The order
/// of the list does not matter.
///
/// Errors    InvalidArgument for another word, a word given twice, a number that is not in 1 .. 65536, or an area that is
///           not in 0.0001 .. 1. Areas round to 0.0001.
/// Example   tests/data/augment/augmentation_test.cpp
Augmentation parse_augmentation(std::string_view text);

/// The text that parse_augmentation reads, in the order in which the steps are applied; "none" without any.
std::string text_of(const Augmentation& augmentation);

/// Errors    InvalidArgument if an image of that shape [height, width, channels] cannot be augmented so.
void check_fits(const Augmentation& augmentation, const kernels::Shape& shape);

/// Applies augmentations to the images of one epoch, one after the other, with the bits of the kernel gather_batch.
///
/// Threads   one caller; it holds the memory of an image.
/// Errors    InvalidArgument as check_fits.
/// Cost      draws 10 rounds of Philox a sample and purpose; copies each pixel once.
class Augmenter {
 public:
  Augmenter(const EpochAugmentation& augmentation, const kernels::Shape& shape);

  /// Crops and flips the pixels of a sample. The result is `pixels` itself if nothing applies, else memory of the
  /// augmenter, until the next call.
  std::span<const std::uint8_t> crop_and_flip(std::int64_t sample, std::span<const std::uint8_t> pixels);
  /// Sets the cut-out square of the sample of the last call to 0.
  void cut_out(std::span<float> normalized) const;

 private:
  void crop(std::span<const std::uint8_t> pixels);
  void crop_resized(std::span<const std::uint8_t> pixels);

  EpochAugmentation augmentation_;
  int height_, width_, channels_;
  kernels::gather_batch::Draw draw_;
  std::vector<std::uint8_t> augmented_;
  std::vector<kernels::gather_batch::Taps> columns_;
};

}  // namespace gradring::data
