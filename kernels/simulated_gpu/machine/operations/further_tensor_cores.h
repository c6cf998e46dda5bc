// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

// mma and wmma of all types and shapes but those of mma.h, which tensor_cores.cpp has.
//
// Errors    Unsupported.

/// Behind .sync.aligned.
void translate_further_mma(Decoder& decoder, Operation& operation);
/// The same.
void translate_further_wmma(Decoder& decoder, Operation& operation);

}  // namespace gradring::simulated_gpu
