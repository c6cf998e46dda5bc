// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>

namespace gradring::comm::nccl {

// Streams as NCCL sees them: of simulated GPUs (stream_work.cpp), or in tests of GPUs that the CPU stands in for.

/// Enqueues `work` on a cudaStream_t, which runs in the order of the stream; if that is captured, at every launch of the graph.
void enqueue(void* stream, std::function<void()> work);

/// Within such work: `call` reads or writes these bytes of a device. What it wrote, kernels may read.
///
/// Errors    on simulated GPUs: throws what the device fails with if they are not within a block of memory, or race with other work.
void note_use(const char* call, const void* data, std::size_t bytes, bool is_write);

}  // namespace gradring::comm::nccl
