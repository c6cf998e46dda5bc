// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/simulated_gpu/cudart/copy_targets.h"
#include "kernels/simulated_gpu/cudart/counting.h"
#include "kernels/simulated_gpu/cudart/device.h"
#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/cudart/mapped_ranges.h"
#include "kernels/simulated_gpu/cudart/objects.h"
#include "kernels/simulated_gpu/cudart/scheduler.h"
#include "kernels/simulated_gpu/cudart/simulated_gpu.h"
#include "kernels/simulated_gpu/memory/global_memory.h"

namespace gradring::simulated_gpu {

/// What CUDA knows of each thread of the host.
struct HostThread {
  int device = 0;                 ///< current
  bool has_selected = false;      ///< it called cudaSetDevice
  bool has_context = false;       ///< of the current device: the driver's calls need it
  bool in_host_function = false;  ///< of cudaLaunchHostFunc
  bool has_called = false;        ///< CUDA
  bool in_call = false;           ///< of CUDA
  cudaError_t last_error = cudaSuccess;
};
HostThread& this_thread();

/// A block of device memory, or of pinned memory.
struct Allocation {
  std::size_t bytes = 0;
  int device = 0;
  bool is_freed = false;           ///< by cudaFreeAsync or cudaFreeHost
  std::shared_ptr<PoolUse> use{};  ///< of its pool; null: pinned memory
  std::shared_ptr<std::atomic<bool>> is_there =
      std::make_shared<std::atomic<bool>>(false);  ///< its stream has come to it
};

/// The state behind CUDA's functions, of which a process has one.
///
/// Threads   what changes is guarded by `mutex`, which Call holds, but for members that guard themselves: faults, memory,
///           addresses, copy_targets, the failure of a device, and scheduler.
struct Runtime {
  explicit Runtime(const SimulationOptions& options);

  Device& device(int index) { return devices.at(static_cast<std::size_t>(index)); }
  bool has_device(int index) const { return index >= 0 && index < static_cast<int>(devices.size()); }

  /// Puts work at the end of a stream; if that is captured, into the graph, and returns null.
  Scheduler::WorkPtr enqueue(Stream& stream, StreamWork work);

  /// From now on, the orders that another seed draws; for tests. No work may be under way.
  void reseed(std::uint64_t other);

  /// Objects and memory that were not given back, as faults; nothing if a device failed.
  void report_leaks();

  const SimulationOptions options;
  const Card card;  ///< of each device
  std::mutex mutex;
  FindingLog faults;
  GlobalMemory memory;
  MappedRanges addresses;
  CopyTargets copy_targets;
  std::deque<Device> devices;
  Handles<Stream, cudaStream_t> streams{"a stream"};
  Handles<Event, cudaEvent_t> events{"an event"};
  Handles<Pool, cudaMemPool_t> pools{"a memory pool"};
  Handles<std::shared_ptr<const Recipe>, cudaGraph_t> graphs{"a graph"};  ///< their launches share it
  Handles<GraphExecutable, cudaGraphExec_t> executables{"an executable graph"};
  std::map<void*, Allocation> allocations;         ///< those that were freed, too: their addresses do not come back
  std::vector<std::shared_ptr<Capture>> captures;  ///< those that have not ended
  std::map<std::pair<const void*, int>, int>
      allowed_shared;  ///< dynamic bytes by kernel and device, where a program asked
  std::atomic<std::uint64_t> seed;
  std::atomic<std::uint64_t> launches{0};  ///< executed so far
  Counting counting;
  Scheduler scheduler;  // last: its threads use the rest until it is destroyed
};

/// Made by the first call of CUDA's.
Runtime& runtime();
/// What the first call will simulate; without effect after it.
///
/// Errors    InvalidArgument if the card is unknown, or a number is out of range.
void configure(const SimulationOptions& options);
/// Forgets everything but the kernels that were registered; for tests. No other thread may use the runtime.
void restart(const SimulationOptions& options);

/// One call of CUDA's: holds the runtime's lock.
class Call {
 public:
  explicit Call(const char* name) : rt(runtime()), lock(rt.mutex), name_(name) {
    rt.copy_targets.protect_again();
    this_thread().has_called = this_thread().in_call = true;
  }
  ~Call() { this_thread().in_call = false; }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Begins a call on the current device.
  ///
  /// Errors    Refusal if the device failed.
  Device& on_current() { return on(this_thread().device); }
  /// The same on an object of device `index`. The call opens a context on the current device if it has none, as CUDA
  /// does, and reports one that nobody wanted.
  Device& on(int index);
  /// The same for what releases something, which works after a failure as well.
  void release(int index) { open_context(index); }

  /// Errors    Misuse, and the capture is invalidated, if a capture of this thread, or one in the global mode of any
  ///           thread, forbids calls like this one.
  void refuse_in_captures();
  /// Errors    Misuse for the default streams, which are not simulated, and for what is no stream.
  Stream& stream(cudaStream_t handle);

  /// Reports a mistake that CUDA lets pass.
  void report(const std::string& mistake) { rt.faults.add(FindingKind::mistake, joined(name_, ": ", mistake)); }

  Runtime& rt;
  std::unique_lock<std::mutex> lock;

 private:
  void open_context(int index);

  const char* name_;
};

/// Notes the result of a call for cudaGetLastError.
cudaError_t noted(cudaError_t result);
/// Reports what broke a rule.
cudaError_t misused(const char* name, const Misuse& misuse);

/// Calls `body` with a Call, and returns what CUDA would. A body returns nothing, or a result that is no error and thus no
/// exception.
template <class Body>
cudaError_t call(const char* name, const Body& body) noexcept try {
  if (this_thread().in_host_function)
    return misused(name, {cudaErrorNotPermitted, "a call by a function that cudaLaunchHostFunc enqueued"});
  Call begun(name);
  if constexpr (std::is_void_v<decltype(body(begun))>) {
    body(begun);
    return cudaSuccess;
  } else {
    return body(begun);
  }
} catch (const Refusal& refusal) {
  return noted(refusal.error);
} catch (const Misuse& misuse) {
  return misused(name, misuse);
} catch (const std::bad_alloc&) {
  return noted(cudaErrorMemoryAllocation);
} catch (const std::exception& error) {
  return misused(name, {cudaErrorUnknown, error.what()});
}

}  // namespace gradring::simulated_gpu
