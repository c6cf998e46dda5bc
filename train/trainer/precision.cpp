// SPDX-License-Identifier: Apache-2.0
#include "train/trainer/precision.h"

#include "kernels/runtime/error.h"

namespace gradring::train {

using kernels::DType;

kernels::DType precision_named(std::string_view name, const kernels::DeviceId& device) {
  if (name == "auto") return device.kind == kernels::DeviceKind::cuda ? DType::f16 : DType::f32;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
    if (precision_name(dtype) == name) return dtype;
  throw InvalidArgument("precision '" + std::string(name) + "' is unknown: expected fp32, fp16 or bf16");
}

std::string precision_name(DType dtype) {
  switch (dtype) {
    case DType::f32: return "fp32";
    case DType::f16: return "fp16";
    case DType::bf16: return "bf16";
    default:
      throw InvalidArgument("type " + std::string(name_of(dtype)) + " is no precision: expected f32, f16 or bf16");
  }
}

}  // namespace gradring::train
