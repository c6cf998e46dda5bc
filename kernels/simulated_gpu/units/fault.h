// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/base/error.h"
#include "kernels/simulated_gpu/ptx/error.h"

namespace gradring::simulated_gpu {

/// Something that a kernel or a host program must not do on a GPU, and that the simulated GPU saw.
///
/// what() names the kernel, the block and thread, the instruction as PTX, and the C++ line:
/// "shared memory is read before it is written: 16 bytes at offset 2048, by thread (3, 0, 0) of block (1, 0, 0)
///    in gemm_mma_kernel<__half>, kernels/ops/gemm/7_mma.cu:118
///    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r9];"
class Fault : public Error {
 public:
  using Error::Error;
};

}  // namespace gradring::simulated_gpu
