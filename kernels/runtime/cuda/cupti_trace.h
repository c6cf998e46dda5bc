// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "kernels/runtime/device_trace.h"

namespace gradring::kernels {

/// Activities of all GPUs of this process by CUPTI. One at a time: CUPTI keeps one receiver of its buffers. To be made
/// before the first CUDA graph is captured.
///
/// Errors    DeviceError if CUPTI is missing or too old, cannot record because a profiler is attached, or this build
///           was made without its headers (no_cupti.cpp).
/// Memory    1 MiB for each buffer that CUPTI asks for, and at most 2^20 activities.
/// Source    CUPTI's activity interface, cupti_activity.h
/// Example   tests/kernels/runtime/cuda/cupti_trace_test.cpp
std::unique_ptr<DeviceTrace> make_cupti_trace();
/// The same with the library in this file.
std::unique_ptr<DeviceTrace> make_cupti_trace(const std::string& file);

}  // namespace gradring::kernels
