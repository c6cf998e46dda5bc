// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "kernels/step_state/step_state.h"

namespace gradring::kernels::step_state {
inline namespace GRADRING_KERNEL_COPY {

Variant one_thread();  // 1_one_thread.cu

std::span<const Variant> variants() {
  static const std::array kTable = {one_thread()};
  return kTable;
}

}  // namespace GRADRING_KERNEL_COPY
}  // namespace gradring::kernels::step_state
