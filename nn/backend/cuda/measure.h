// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "kernels/runtime/stream.h"

namespace gradring::nn {

/// How long one run of `enqueue_work` takes on device `index`, in seconds: the best of a few, after one to warm up. Waits.
///
/// Errors    DeviceError if the work fails, or hangs.
double measure(int index, kernels::Stream& stream, const std::function<void()>& enqueue_work);

}  // namespace gradring::nn
