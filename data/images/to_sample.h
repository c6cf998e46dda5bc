// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/images/image.h"
#include "kernels/runtime/shape.h"

namespace gradring::data {

/// The pixels of an image as a data set would hold it: in the sample's size and channels, 255 - x if `invert`. Colours
/// become grey as PIL and torchvision do it: (19595 R + 38470 G + 7471 B) / 65536, rounded.
///
/// Shapes    image: one channel or three; sample: [height, width, 1 or 3].
/// Errors    InvalidArgument for other channels.
std::vector<std::uint8_t> to_sample(const Image& image, const kernels::Shape& sample, bool invert);

/// Whether a grey sample's border is light on the whole: a digit written on paper, where MNIST's are light on dark.
bool has_light_border(std::span<const std::uint8_t> pixels, const kernels::Shape& sample);

}  // namespace gradring::data
