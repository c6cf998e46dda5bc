// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>
#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace gradring::kernels {

/// Throws unless `result` is cudaSuccess. `call` is the name of the function that returned it, as in NVIDIA's
/// reference. The runtime's own note of the error is cleared, so that a later, innocent call does not report it again.
///
/// Errors    DeviceError: the call, CUDA's name and text of the error, and the caller's source location. Work runs after
///           the call that enqueued it; so an error that a kernel made may be reported by a later call of another kind.
/// Example   cuda_check(cudaEventRecord(event, stream), "cudaEventRecord");
void cuda_check(cudaError_t result, std::string_view call,
                std::source_location where = std::source_location::current());

/// Makes device `index` the one that this thread's calls are for, and leaves it so: every call of ours that depends on
/// it says so first. To put the old one back would open a context on device 0, hundreds of megabytes, from every thread
/// that works on another.
///
/// Errors    as cuda_check.
void make_current(int index, std::source_location where = std::source_location::current());

/// The same where nothing may throw: what frees memory or destroys a handle, on whatever thread, calls it first.
///
/// Returns   false if the device cannot be made current: then there is nothing left to release.
bool try_make_current(int index) noexcept;

/// Destroys a handle by `kDestroy`, a function of CUDA's, with the handle's device current: CUDA opens a context on the
/// current device for it, hundreds of megabytes, which is device 0 in a thread that never chose one.
template <auto kDestroy>
struct DestroyOnDevice {
  int index = 0;

  template <class Handle>
  void operator()(Handle handle) const noexcept {
    if (try_make_current(index)) (void)kDestroy(handle);
  }
};

/// The owner of a handle such as cudaStream_t: CudaHandle<cudaStream_t, cudaStreamDestroy> stream(handle, {index}).
///
/// Threads   any may destroy it.
template <class Handle, auto kDestroy>
using CudaHandle = std::unique_ptr<std::remove_pointer_t<Handle>, DestroyOnDevice<kDestroy>>;

/// The first thing that went wrong in work that a device ran. CUDA has it that a device fails as a whole: after a
/// kernel's bad access every call on every stream returns the same error. Host work that throws is treated alike; so
/// whoever waits behind it, on whatever stream, receives the cause.
///
/// Threads   any; the host's threads and CUDA's own.
class DeviceFailure {
 public:
  bool happened() const noexcept { return happened_.load(std::memory_order_acquire); }

  /// Keeps `failure` if it is the first.
  void keep(std::exception_ptr failure) noexcept {
    std::lock_guard lock(mutex_);
    if (happened()) return;
    failure_ = std::move(failure);
    happened_.store(true, std::memory_order_release);
  }

  /// Throws what was kept, if anything was.
  void rethrow() const {
    if (!happened()) [[likely]]
      return;
    std::lock_guard lock(mutex_);
    std::rethrow_exception(failure_);
  }

 private:
  std::atomic<bool> happened_{false};
  mutable std::mutex mutex_;
  std::exception_ptr failure_;
};

/// "139.8 GiB"
std::string gibibytes(std::size_t bytes);

/// The message for a request of `asked` bytes on `device` with `free` of `total` left: how much is missing, what to do.
std::string out_of_memory(const std::string& device, std::size_t asked, std::size_t free, std::size_t total);

}  // namespace gradring::kernels
