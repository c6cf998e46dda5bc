// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "kernels/runtime/device.h"
#include "kernels/runtime/dtype.h"

namespace gradring::train {

/// The type that a run computes in by the name that a person gives it: fp32, fp16, bf16, or auto, which is fp16 on a GPU
/// and fp32 on a CPU.
///
/// Errors    InvalidArgument for another name.
kernels::DType precision_named(std::string_view name, const kernels::DeviceId& device);

/// The inverse: "fp32", "fp16", "bf16".
std::string precision_name(kernels::DType dtype);

}  // namespace gradring::train
