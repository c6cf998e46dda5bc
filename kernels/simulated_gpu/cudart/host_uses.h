// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <vector>

namespace gradring::simulated_gpu {

/// The host's uses of pinned memory that the device writes. The pages are protected: those of a copy's target from the
/// call until the copy runs, those that a kernel wrote from then on. A thread that accesses them comes to a handler of
/// SIGSEGV, which takes the protection away until the next call of CUDA's, so that the thread goes on. A thread of the
/// host that accesses a byte of a target is reported. What it accesses of a kernel's page is noted as work of its own,
/// to be compared with the work of the device.
///
/// Limits    a system call that is given a protected page fails with EFAULT; a thread that never called CUDA is not
///           seen; of a kernel's page, the first access after a call of CUDA's is.
/// Threads   any.
class HostUses {
 public:
  struct Target {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    int device = 0;
  };

  /// By the thread of the host, in its handler.
  struct Listener {
    std::function<void(const Target&)> uses_target;         ///< too early; once for each
    std::function<void(std::uintptr_t address)> uses_page;  ///< that a kernel wrote
    std::function<void(std::uintptr_t address)> faults;     ///< at another address, by SIGSEGV
  };

  explicit HostUses(Listener listener);
  ~HostUses();

  /// A copy was enqueued.
  void begin(const Target& target);
  /// It runs now.
  void end(std::uintptr_t address, std::size_t bytes);
  /// A kernel wrote there.
  void add_page_of_kernels(std::uintptr_t address, std::size_t bytes);
  /// Protects what was accessed beside targets, and pages of kernels, again; with every call of CUDA's.
  void protect_again();
  /// The memory is given back.
  void forget(std::uintptr_t address, std::size_t bytes);

  /// For the handler: whether the address may be accessed now.
  bool let_access(std::uintptr_t address);
  void note_fault(std::uintptr_t address) const;

 private:
  /// Sets the protection of the pages of a range; false if the system refuses, which has a limit of mappings.
  bool set(std::uintptr_t address, std::size_t bytes, int protection) const;

  const Listener listener_;
  const std::uintptr_t page_;
  std::mutex mutex_;
  std::vector<Target> targets_;                      // under way
  std::set<std::uintptr_t> pages_;                   // that were protected once, and were not given back
  std::map<std::uintptr_t, bool> pages_of_kernels_;  // of these; whether it may be accessed now
  std::atomic<bool> opened_{false};                  // some page of a target or of kernels may be accessed
};

}  // namespace gradring::simulated_gpu
