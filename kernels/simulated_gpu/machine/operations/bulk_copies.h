// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/simulated_gpu/machine/decoder.h"
#include "kernels/simulated_gpu/machine/program.h"

namespace gradring::simulated_gpu {

/// cp.async.bulk and cp.reduce.async.bulk, whose words up to .bulk were taken: `reduces` for the second.
///
/// Errors    Unsupported.
void translate_bulk_copy(Decoder& decoder, Operation& operation, bool reduces);

}  // namespace gradring::simulated_gpu
