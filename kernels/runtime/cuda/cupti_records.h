// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "kernels/runtime/cuda/cupti_api.h"
#include "kernels/runtime/cuda/gpu_activities.h"

namespace gradring::kernels {

/// What a record of CUPTI says, of the kinds CONCURRENT_KERNEL, KERNEL, MEMCPY, MEMCPY2 (between GPUs) and MEMSET; of
/// others nothing. The name lives as long as the record.
///
/// CUPTI numbers the types of its records, and writes the newest that it knows, which depends on the library and not on
/// the headers of this build. We read the members that all versions since CUDA 11.1 (Kernel5, Memcpy4, MemcpyPtoP3,
/// Memset3) have at the same offsets; cupti_records.cpp compares the next versions', and the tests those of CUDA 13.
std::optional<GpuActivity> decode(const CUpti_Activity& record);

}  // namespace gradring::kernels
