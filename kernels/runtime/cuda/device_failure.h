// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

namespace gradring::kernels {

/// The first thing that went wrong in work that a device ran. CUDA has it that a device fails as a whole: after a kernel's
/// bad access every call on every stream returns the same error. Host work that throws is treated alike; so whoever
/// waits behind it, on whatever stream, receives the cause.
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

}  // namespace gradring::kernels
