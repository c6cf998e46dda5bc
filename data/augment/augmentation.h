// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/ops/gather_batch/draws.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

using kernels::gather_batch::Augmentation;

/// From the text of --augment: a list of flip, flip=alternating, crop=PAD, cutout=SIZE, resized-crop (of 0.08 to 1 of
/// the area, as torchvision's), resized-crop=MIN:MAX, mixup=ALPHA and cutmix=ALPHA, separated by commas; "none" or "":
/// no augmentation. The order of the list does not matter.
///
/// Errors    InvalidArgument for another word, a word given twice, a number of pixels that is not in 1 .. 65536, an
///           area that is not in 0.0001 .. 1, or an alpha not in 0.001 .. 100. Areas round to 0.0001, alphas to 0.001.
/// Example   tests/data/augment/augmentation_test.cpp
Augmentation parse_augmentation(std::string_view text);

/// The text that parse_augmentation reads, in the order in which the steps are applied; "none" without any.
std::string text_of(const Augmentation& augmentation);

/// Errors    InvalidArgument if an image of that shape [height, width, channels] cannot be augmented so.
void check_fits(const Augmentation& augmentation, const kernels::Shape& shape);

}  // namespace gradring::data
