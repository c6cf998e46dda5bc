// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "kernels/runtime/trace_track.h"

namespace gradring::kernels {

/// Ranges of NVTX, in the domain "gradring", for a profiler such as Nsight Systems. The payload is the number of a step,
/// bucket or collective; the category is the trace's.
///
/// Returns   null if this build has no NVTX headers (no_nvtx.cpp).
/// Cost      without a profiler a comparison of a pointer for each call.
/// Source    NVTX 3, nvtx3/nvToolsExt.h
/// Example   tests/kernels/runtime/cuda/nvtx_ranges_test.cpp
std::unique_ptr<TraceRanges> make_nvtx_ranges();

}  // namespace gradring::kernels
