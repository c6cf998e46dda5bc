// SPDX-License-Identifier: Apache-2.0
// In the CUDA module the name exists, too, so that a request for it gets a clear error.
#include "kernels/ops/batch_norm/batch_norm.h"

namespace gradring::kernels::batch_norm {
inline namespace GRADRING_KERNEL_COPY {

Variant native_cpu() {
  return {.name = "native",
          .workspace_bytes = [](std::int64_t, std::int64_t) { return std::size_t{0}; },
          .supports = [](const Device&, DType) { return false; },
          .computes = [](DType) { return false; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::batch_norm
