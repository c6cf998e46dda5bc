// SPDX-License-Identifier: Apache-2.0
// In the CUDA module, the variants that CPUs alone have: their names exist, so that a request for one gets a clear error.
#include "kernels/ops/grouped_conv2d/grouped_conv2d.h"
#include "kernels/ops/kernel_set.h"

namespace gradring::kernels {
namespace {

template <class... Sizes>
void need_nothing(std::size_t (*&workspace_bytes)(Sizes...)) {
  workspace_bytes = [](Sizes...) { return std::size_t{0}; };
}

}  // namespace

#define ONLY_ON_CPU(operation, function, variant)               \
  namespace operation {                                         \
  inline namespace GRADRING_KERNEL_COPY {                       \
  Variant function() {                                          \
    Variant made{};                                             \
    made.name = variant;                                        \
    need_nothing(made.workspace_bytes);                         \
    made.supports = [](const Device&, DType) { return false; }; \
    return made;                                                \
  }                                                             \
  }                                                             \
  }                                                             \
  static_assert(true, "a semicolon follows")

ONLY_ON_CPU(batch_norm, native_cpu, "native");
ONLY_ON_CPU(conv2d, panels_cpu, "panels");
ONLY_ON_CPU(conv_relu_pool, native_cpu, "native");
ONLY_ON_CPU(grouped_conv2d, native_cpu, "native");

}  // namespace gradring::kernels
