// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gradring::train::page {

/// The filters of a convolution as images of 8 bits per channel.
struct ShadedFilters {
  double largest = 0;                               ///< magnitude of a weight
  std::vector<std::vector<std::uint8_t>> images{};  ///< one per filter, channels innermost
};

/// Mid grey is 0, white the largest magnitude of all filters, black its negative. Weights that are not finite are mid
/// grey and do not count.
///
/// Shapes    weights: [filters, channels, area], as PyTorch orders them; channels and area at least 1.
ShadedFilters shaded_filters(std::span<const double> weights, std::size_t channels, std::size_t area);

}  // namespace gradring::train::page
