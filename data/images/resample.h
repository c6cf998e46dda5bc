// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/images/image.h"

namespace gradring::data {

/// Resizes as PIL.Image.resize((width, height), BILINEAR) and torchvision's Resize of a PIL image: a triangle as wide
/// as the shrinking, so that it antialiases.
///
/// Errors    InvalidArgument if either size is empty.
/// Numerics  the bits of Pillow up to 12: weights with 22 bits after the point, columns first, rounded to 8 bits after
///           each axis; an axis of unchanged size is copied. Pillow 13 begins with the rows where that is less work,
///           which changes some bytes by 1.
/// Cost      (old height x new width x shrinking + new height x new width x shrinking) x channels products.
/// Source    Pillow's documented filter; that its bits are met is tested against Pillow itself.
/// Example   tests/data/images/resample_test.cpp
Image resized_as_pillow(const Image& image, std::int64_t height, std::int64_t width);

/// The shorter side becomes `size`, the other keeps the proportion, rounded down: torchvision's Resize(size).
///
/// Errors    InvalidArgument as above.
Image shorter_side_resized(const Image& image, std::int64_t size);

/// The middle of an image, as torchvision's CenterCrop: what is odd is cut so that the offset is even.
///
/// Errors    InvalidArgument if the image is smaller, which torchvision pads.
Image centre_crop(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace gradring::data
