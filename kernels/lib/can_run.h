// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"

namespace gradring::kernels {

/// Whether a variant may be named for `dtype` on a device: where it is chosen, and on a CPU all that it is right for, as the
/// execution model runs what was written for GPUs, slowly.
template <class Variant>
bool can_run(const Variant& variant, const Device& device, DType dtype) {
  if constexpr (requires { variant.computes; })
    if (variant.computes && device.id().kind == DeviceKind::cpu) return variant.computes(dtype);
  return variant.supports(device, dtype);
}

}  // namespace gradring::kernels
