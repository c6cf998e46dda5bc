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
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/simulated_gpu/cudart/counting.h"
#include "kernels/simulated_gpu/cudart/default_streams.h"
#include "kernels/simulated_gpu/cudart/device.h"
#include "kernels/simulated_gpu/cudart/device_functions.h"
#include "kernels/simulated_gpu/cudart/error_text.h"
#include "kernels/simulated_gpu/cudart/host_uses.h"
#include "kernels/simulated_gpu/cudart/mapped_ranges.h"
#include "kernels/simulated_gpu/cudart/module_instances.h"
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

/// A block of memory that CUDA knows.
struct Allocation {
  enum class Kind : std::uint8_t {
    device,      ///< cudaMalloc
    pool,        ///< cudaMallocAsync, cudaMallocFromPoolAsync
    pinned,      ///< cudaHostAlloc
    registered,  ///< cudaHostRegister
    managed,     ///< cudaMallocManaged
  };
  std::size_t bytes = 0;
  int device = 0;
  Kind kind = Kind::pinned;
  bool is_freed = false;
  std::shared_ptr<PoolUse> use{};  ///< of its pool or device; null: memory of the host
  std::shared_ptr<std::atomic<bool>> is_there =
      std::make_shared<std::atomic<bool>>(false);  ///< its stream has come to it
};

/// The state behind CUDA's functions, of which a process has one.
///
/// Threads   `mutex`, which Call holds, guards what changes, but for members that guard themselves: faults, memory,
///           addresses, host_uses, output, heap, the failure of a device, and scheduler.
struct Runtime {
  explicit Runtime(const SimulationOptions& options);

  Device& device(int index) { return devices.at(static_cast<std::size_t>(index)); }
  bool has_device(int index) const { return index >= 0 && index < static_cast<int>(devices.size()); }

  /// The allocation that holds the byte, also if it was freed; null without one.
  const Allocation* allocation_of(const void* address) const;
  /// What cudaMalloc gave of a device's memory.
  std::shared_ptr<PoolUse>& malloc_use(int device) {
    std::shared_ptr<PoolUse>& use = malloc_uses_[device];
    if (!use) use = std::make_shared<PoolUse>();
    return use;
  }
  /// The addresses of a module's variables on a device, by their index in it.
  ///
  /// Errors    as ModuleInstances::variables
  const std::vector<std::uint64_t>& variables(const ptx::Module& module, int device);
  /// The pool of cudaMallocAsync.
  cudaMemPool_t default_pool(int device) {
    const auto [pool, is_new] = default_pools.try_emplace(device, nullptr);
    if (is_new) pool->second = pools.add({.device = device});
    return pool->second;
  }

  /// What the next work of a stream must be behind, by the rules of the legacy default stream, becomes part of it.
  void order_with_default(Stream& stream) { default_streams.order(stream, streams, scheduler); }
  /// Puts work at the end of a stream; if that is captured, into the graph, and returns null.
  Scheduler::WorkPtr enqueue(Stream& stream, StreamWork work);

  /// From now on, the orders that another seed draws; for tests. No work may be under way.
  void reseed(std::uint64_t other);

  /// Objects and memory that were not given back, as faults; nothing if a device failed. `when`: "at the end of the
  /// process". `device`: of this one alone.
  void report_leaks(const char* when = "at the end of the process", std::optional<int> device = {});
  /// Gives back what a device has, after it was reported. Its work must have ended.
  void reset(int device);
  /// Writes what printf of kernels wrote until now.
  void print_device_output() { output.print(); }

  const SimulationOptions options;
  const Card card;  ///< of each device
  std::mutex mutex;
  FindingLog faults;
  GlobalMemory memory;
  MappedRanges addresses;
  HostUses host_uses;
  std::deque<Device> devices;
  Handles<Stream, cudaStream_t> streams{"a stream"};
  Handles<Event, cudaEvent_t> events{"an event"};
  Handles<Pool, cudaMemPool_t> pools{"a memory pool"};
  Handles<Graph, cudaGraph_t> graphs{"a graph"};
  Handles<GraphNode, cudaGraphNode_t> graph_nodes{"a node of a graph"};
  Handles<GraphExecutable, cudaGraphExec_t> executables{"an executable graph"};
  std::map<void*, Allocation> allocations;         ///< those that were freed, too: their addresses do not come back
  std::vector<std::shared_ptr<Capture>> captures;  ///< those that have not ended
  std::map<int, cudaMemPool_t> default_pools;      ///< by device
  DefaultStreams default_streams;
  std::map<int, Scheduler::WorkPtr> orphans;  ///< by device: the end of all work of destroyed streams
  ModuleInstances modules{memory, addresses};
  std::map<std::pair<const void*, int>, int>
      allowed_shared;  ///< dynamic bytes by kernel and device, where a program asked
  std::atomic<std::uint64_t> seed;
  std::atomic<std::uint64_t> launches{0};  ///< executed so far
  /// What is being executed: a mangled name; null: no kernel.
  std::atomic<const ptx::Kernel*> running{nullptr};
  /// Of cudaDeviceSetLimit. Devices read them at any time.
  std::map<cudaLimit, std::atomic<std::size_t>> limits;
  DeviceOutput output;
  DeviceHeap heap{memory, addresses};
  const RuntimeFunctions functions = device_functions(*this);
  Counting counting;
  Scheduler scheduler;  // its threads use the rest until it is destroyed

 private:
  void fail_for_target(const HostUses::Target& target);
  void note_host_use(std::uintptr_t address);

  std::map<int, std::shared_ptr<PoolUse>> malloc_uses_;  // by device
};

/// Made by the first call of CUDA's.
Runtime& runtime();
/// What the first call will simulate; without effect after it.
///
/// Errors    InvalidArgument if the card is unknown, or a number is out of range.
void configure(const SimulationOptions& options);
/// Performs nothing more, and reports what was not given back; null if CUDA was never called. The runtime does it
/// itself by std::atexit, unless leave_end_to_caller() was called before.
Runtime* end_of_process();
void leave_end_to_caller();
/// Forgets everything but the kernels that were registered; for tests. No other thread may use the runtime.
void restart(const SimulationOptions& options);

/// Ends the use of CUDA in this process, a copy by fork of one that used it: its calls fail, as CUDA's do then.
///
/// Returns   whether CUDA was used before the fork; if not, this process may use it.
bool leave_to_parent();

/// One call of CUDA's: holds the runtime's lock.
class Call {
 public:
  explicit Call(const char* name) : rt(runtime()), lock(rt.mutex), name_(name) {
    rt.host_uses.protect_again();
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
  /// Also a default stream of the current device.
  ///
  /// Errors    Misuse for what is no stream; in a strict runtime, for a default stream.
  Stream& stream(cudaStream_t handle);
  /// Lets the work end that a stream has now, and waits. The lock is not held meanwhile, so `work` is a copy: another
  /// thread may enqueue to the stream, or destroy it.
  ///
  /// Errors    Refusal if the device failed.
  void wait_for(Scheduler::WorkPtr work, int device);

  /// Reports a mistake that CUDA lets pass.
  void report(const std::string& mistake) { rt.faults.add(FindingKind::mistake, joined(name_, ": ", mistake)); }

  Runtime& rt;
  std::unique_lock<std::mutex> lock;

 private:
  void open_context(int index);

  const char* name_;
};

/// The work that calls a function of the host, by or for `who`.
///
/// Errors    Misuse for a null pointer.
StreamWork host_function_work(const char* who, cudaHostFn_t function, void* argument);

/// Notes the result of a call for cudaGetLastError.
cudaError_t noted(cudaError_t result);
/// Reports what broke a rule.
cudaError_t misused(const char* name, const Misuse& misuse);
/// Whether leave_to_parent() has ended the use of CUDA: no lock may be taken then.
bool is_left_to_parent();
/// Reports a call after that.
cudaError_t misused_after_fork(const char* name);

/// Calls `body` with a Call, and returns what CUDA would. A body returns nothing, or a result that is no error and thus
/// no exception.
template <class Body>
cudaError_t call(const char* name, const Body& body) noexcept try {
  if (is_left_to_parent()) return misused_after_fork(name);
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
