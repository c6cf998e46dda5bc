// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "kernels/simt/simt.h"

/// Windows of a pooling along one axis: window w begins at w * stride - padding.
namespace gradring::kernels::lib {
inline namespace GRADRING_KERNEL_COPY {

/// The positions [first, end) of a window that hold inputs, not padding, for a window that begins at `origin`.
struct InsideWindow {
  int first, end;
  __device__ InsideWindow(std::int64_t origin, int window, std::int64_t extent)
      : first(origin < 0 ? static_cast<int>(-origin) : 0),
        end(extent - origin < window ? static_cast<int>(extent - origin) : window) {}

  __device__ int count() const { return end - first; }
};

/// The windows that cover index `at`, counted from the first of the padding: [first, last], empty if last < first.
struct CoveringWindows {
  int first, last;
  __device__ CoveringWindows(int at, int window, int stride, int windows)
      : first(at < window ? 0 : (at - window) / stride + 1), last(at / stride < windows ? at / stride : windows - 1) {}
};

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::lib
