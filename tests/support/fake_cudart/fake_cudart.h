// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "kernels/runtime/cuda/cuda_error.h"

namespace gradring::tests {

/// A CUDA runtime without a GPU, linked in the place of NVIDIA's: what the functions of this folder note, and how they
/// behave. There are kDevices devices, each thread begins with device 0 current, and any call that needs a context opens
/// one on the current device, as NVIDIA's does. Device memory is host memory, and work is done when it is enqueued; what
/// is captured, when its graph is launched.
///
/// Time is counted, not measured. The host takes kEnqueueSeconds for each call that enqueues, a stream kWorkSeconds for
/// each copy, clearing and kernel, and it starts none before it was enqueued.
///
/// A capture forbids what CUDA forbids in the thread-local mode: to the thread that captures, queries and memory of the
/// host; to all, queries of a captured event or stream, and dependencies on work outside.
///
/// The runtime of simulated GPUs (kernels/simulated_gpu/cudart) cannot take its place: that reports calls that are
/// wrong, and performs work. Here tests look at right ones, how often each is called and on which device, at the time
/// that calls cost the host, and at devices that hang or are lost.
///
/// What it leaves out: the legacy stream, copies between host and device that wait, errors of kernels.
///
/// Threads   any.
struct FakeCuda {
  static constexpr int kDevices = 4;
  static constexpr double kEnqueueSeconds = 5e-6;
  static constexpr double kWorkSeconds = 1e-6;

  std::mutex mutex;  ///< guards the rest
  /// The devices with a context, and the call that opened it.
  std::map<int, std::string> contexts;
  /// Calls for an object of one device while another was current, as "cudaEventDestroy: 2 with 0 current".
  std::vector<std::string> misplaced;
  /// How often each function was called.
  std::map<std::string, int> calls;
  /// Objects that were made and not destroyed: streams, events, graphs, blocks of memory.
  std::set<const void*> alive;
  /// Enqueued work never ends, so queries of streams return cudaErrorNotReady, and what would wait for it blocks.
  bool hangs = false;
  /// Calls that would have blocked.
  std::vector<std::string> blocked;
  /// The device is lost: it cannot be made current any more.
  bool lost = false;
  /// What happens elsewhere while the next cudaHostAlloc, which is slow, allocates. Called without the lock.
  std::function<void()> during_host_alloc;
  /// The static shared memory of each kernel, which a test sets, and the dynamic that it was allowed.
  std::map<const void*, std::size_t> static_shared;
  std::map<const void*, std::size_t> allowed_shared;
  double now = 0;  ///< seconds on the host
};

/// The one that the functions of this folder use.
FakeCuda& fake_cuda();
/// Forgets everything; this thread's current device is 0 again.
void reset_fake_cuda();

}  // namespace gradring::tests
