// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nccl.h>

#include "kernels/runtime/dtype.h"

namespace gradring::comm::nccl {

/// Of the types that the project sends; others are bytes.
inline kernels::DType dtype_of(ncclDataType_t type) {
  using kernels::DType;
  switch (type) {
    case ncclFloat32: return DType::f32;
    case ncclFloat16: return DType::f16;
    case ncclBfloat16: return DType::bf16;
    case ncclInt32: return DType::i32;
    case ncclInt64: return DType::i64;
    default: return DType::u8;
  }
}

}  // namespace gradring::comm::nccl
