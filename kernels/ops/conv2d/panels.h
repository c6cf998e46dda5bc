// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/ops/conv2d/conv2d.h"

namespace gradring::kernels::conv2d {

/// The largest kernel, and the widest row of y, for which the variant `panels` has room.
constexpr std::int64_t kPanelKernel = 3, kPanelWidth = 128;

/// Whether `panels` computes this gradient of the weights itself: channels fill its tiles, and operands its panels.
constexpr bool fits_panels(const Geometry& g) {
  return g.groups == 1 && g.in_channels % 32 == 0 && g.out_channels % 8 == 0 && g.kernel_height <= kPanelKernel &&
         g.kernel_width <= kPanelKernel && g.stride <= 2 && g.out_width() <= kPanelWidth && g.out_elements() > 0;
}

}  // namespace gradring::kernels::conv2d
