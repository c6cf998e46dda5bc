// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "data/images/image.h"

namespace gradring::data {

/// The image in another size, each axis by itself: where it shrinks, a new pixel is the mean of the area that it covers;
/// where it grows, the old pixels' centres are joined by straight lines. The proportions follow the new size.
///
/// Errors    InvalidArgument if either size is empty.
/// Numerics  weights and sums in double, rounded once to the nearest; an axis that keeps its size is copied.
/// Cost      one pass over the image, and one over the rows that are left.
Image resized(const Image& image, std::int64_t height, std::int64_t width);

}  // namespace gradring::data
