// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "train/records/metrics/parameter_snapshot.h"
#include "train/view/tensorboard/event_message.h"

namespace gradring::train::tensorboard {

/// Images of one size, 8 bits per channel, channels innermost.
struct Tiles {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 1;  ///< 1 or 3
  std::vector<std::vector<std::uint8_t>> images{};
};

/// The images side by side in a nearly square grid, in reading order, each pixel enlarged to `zoom` by `zoom`, with gaps
/// of mid grey. At least one image.
EncodedImage grid_of(const Tiles& tiles, int zoom);

/// Whether a parameter is a convolution of one or three input channels, whose filters can be seen.
bool has_visible_filters(const ParameterValues& parameter);

/// The filters of such a convolution (page::shaded_filters); three input channels are red, green and blue.
Tiles filters_of(const ParameterValues& parameter);

}  // namespace gradring::train::tensorboard
