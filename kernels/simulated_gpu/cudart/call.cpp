// SPDX-License-Identifier: Apache-2.0
// How each function of the CUDA runtime begins and fails: Call in runtime.h.
#include <utility>

#include "kernels/simulated_gpu/cudart/runtime.h"

namespace gradring::simulated_gpu {

void Call::open_context(int index) {
  HostThread& thread = this_thread();
  if (!rt.has_device(thread.device)) throw Refusal{cudaErrorNoDevice};
  thread.has_context = true;
  Device& current = rt.device(thread.device);
  if (std::exchange(current.has_context, true)) return;
  if (!rt.options.is_strict) return;
  if (index != thread.device) {
    report(joined("for an object of cuda:", index, ", opens a context on ", current.name(),
                  ", the current device of this thread, which takes about 0.5 GB there: call cudaSetDevice(", index,
                  ") first"));
    return;
  }
  if (thread.has_selected) return;
  for (const Device& other : rt.devices)
    if (other.index() != thread.device && other.has_context)
      return report("opens a context on " + current.name() + " besides that on " + other.name() +
                    ", by a thread that selected no device: call cudaSetDevice first");
}

Device& Call::on(int index) {
  open_context(index);
  Device& device = rt.device(index);
  if (device.failure() != cudaSuccess) throw Refusal{device.failure()};
  return device;
}

void Call::refuse_in_captures() {
  const char* refused = nullptr;
  for (const auto& capture : rt.captures)
    if (capture->forbids_this_thread()) {
      capture->invalidate(name_);
      refused = capture->is_global()
                    ? "a call that CUDA forbids all threads during a capture in cudaStreamCaptureModeGlobal"
                    : "a call that CUDA forbids while this thread captures a stream";
    }
  if (refused) throw Misuse{cudaErrorStreamCaptureUnsupported, refused};
}

Stream& Call::stream(cudaStream_t handle) {
  if (!DefaultStreams::is_default(handle)) return rt.streams.at(handle);
  if (rt.options.is_strict)
    throw Misuse{cudaErrorNotSupported, "the default stream, which is not simulated: create a stream"};
  if (!rt.has_device(this_thread().device)) throw Refusal{cudaErrorNoDevice};
  return rt.default_streams.at(handle, this_thread().device, rt.scheduler);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): without the lock, another thread may change the caller's
void Call::wait_for(Scheduler::WorkPtr work, int device) {
  lock.unlock();
  rt.scheduler.wait(work);
  rt.print_device_output();
  lock.lock();
  on(device);
}

cudaError_t noted(cudaError_t result) {
  if (result != cudaErrorNotReady) this_thread().last_error = result;
  return result;
}

cudaError_t misused(const char* name, const Misuse& misuse) {
  if (is_left_to_parent()) return misused_after_fork(name);
  // After a failure, pointers and handles may be what failed calls left: that says nothing of the program.
  if (const int current = this_thread().device; runtime().has_device(current))
    if (const cudaError_t failure = runtime().device(current).failure(); failure != cudaSuccess) return noted(failure);
  runtime().faults.add(FindingKind::misuse, joined(name, ": ", misuse.text, " (", error_name(misuse.error), ")"));
  return noted(misuse.error);
}

}  // namespace gradring::simulated_gpu
