// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "kernels/runtime/device.h"

namespace gradring::tests {

/// Calls `body` with a CPU device and stream of every kind that a kernel must not notice: in place and on a worker
/// thread, one and several OS threads, every order of the threads of a block, shared memory full of NaN. Failures name
/// the kind.
void for_each_host_stream(const std::function<void(kernels::Device&, kernels::Stream&)>& body);

/// Waits until everything on the stream is done; a minute at most.
void finish(kernels::Stream& stream);

}  // namespace gradring::tests
