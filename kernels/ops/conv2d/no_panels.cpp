// SPDX-License-Identifier: Apache-2.0
// In the CUDA module the name exists, too, so that a request for it gets a clear error.
#include "kernels/ops/conv2d/conv2d.h"

namespace gradring::kernels::conv2d {
inline namespace GRADRING_KERNEL_COPY {

Variant panels_cpu() {
  return {"panels",
          nullptr,
          nullptr,
          nullptr,
          [](const Geometry&) { return std::size_t{0}; },
          [](const Device&, DType) { return false; },
          [](DType) { return false; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv2d
