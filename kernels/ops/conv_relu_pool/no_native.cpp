// SPDX-License-Identifier: Apache-2.0
// In the CUDA module the name exists, too, so that a request for it gets a clear error.
#include "kernels/ops/conv_relu_pool/conv_relu_pool.h"

namespace gradring::kernels::conv_relu_pool {
inline namespace GRADRING_KERNEL_COPY {

Variant native_cpu() {
  return {"native", nullptr, nullptr, nullptr, [](const Device&, DType) { return false; }, [](DType) { return false; }};
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::conv_relu_pool
