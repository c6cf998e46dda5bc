// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/ops/conv2d/conv2d.h"
#include "kernels/simt/simt.h"

/// The first convolution of a network: a filter has so few weights that a k-tile would be mostly empty, and computing
/// the addresses of patches costs more than their products. There are kernels that are templates on the filter's extents
/// (short_filters.cuh).
namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

/// A square kernel over so many inputs.
template <int kKernelExtent, int kInChannels>
struct ShortFilter {
  static constexpr int kKernel = kKernelExtent;
  static constexpr int kInputs = kInChannels;
  static constexpr int kRow = kKernel * kInputs;  ///< weights of a kernel row: neighbours in memory, as are its inputs
  static constexpr int kWeights = kKernel * kRow;

  static bool fits(const Geometry& g) {
    return g.kernel_height == kKernel && g.kernel_width == kKernel && g.in_channels == kInputs;
  }
};

/// Calls visit(ShortFilter<...>()) for filters of that size; false if there are no kernels for them.
template <class Visit>
bool with_short_filter(const Geometry& g, Visit visit) {
  const auto visit_if_fits = [&]<class Filter>(Filter filter) {
    if (!Filter::fits(g)) return false;
    visit(filter);
    return true;
  };
  return visit_if_fits(ShortFilter<3, 1>()) || visit_if_fits(ShortFilter<3, 3>()) || visit_if_fits(ShortFilter<5, 1>());
}

/// Passes of the variant "mma". Each false, having done nothing, where it does not know the geometry.
namespace short_filters {

bool forward(Stream& stream, const ForwardArgs& args);  // 4_short_filters_forward.cu
bool wgrad(Stream& stream, const WgradArgs& args);      // 4_short_filters_wgrad.cu
std::size_t wgrad_workspace_bytes(const Geometry& g);

}  // namespace short_filters

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
