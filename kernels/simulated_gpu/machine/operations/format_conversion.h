// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// Translates any cvt.
///
/// Errors    Unsupported.
void translate_any_conversion(Decoder& decoder, Operation& operation);

}  // namespace gradring::simulated_gpu
