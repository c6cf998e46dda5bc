// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/cuda/nvtx_ranges.h"

namespace gradring::kernels {

std::unique_ptr<TraceRanges> make_nvtx_ranges() { return nullptr; }

}  // namespace gradring::kernels
