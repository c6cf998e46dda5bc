// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>

#include "kernels/runtime/device.h"
#include "kernels/runtime/stream.h"

namespace gradring::tests {

/// Calls `body` with a device and a stream of every kind that a kernel must not notice; failures name the kind.
///
/// On a CPU (host_streams.cpp): in place and on a worker thread, one and several OS threads, every order of the threads
/// of a block, shared memory full of NaN. On a GPU (tests/kernels/on_simulated_gpu): the orders of warps that seeds draw.
void for_each_stream(const std::function<void(kernels::Device&, kernels::Stream&)>& body);

/// Waits until everything on the stream is done; a minute at most.
inline void finish(kernels::Stream& stream) { stream.synchronize(Deadline::after(std::chrono::minutes(1))); }

}  // namespace gradring::tests
