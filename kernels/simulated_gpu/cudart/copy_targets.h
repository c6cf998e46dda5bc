// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>
#include <vector>

namespace gradring::simulated_gpu {

/// Pinned memory that copies under way will write, to find a host that uses it too early. From the call of a copy until
/// it runs, the pages of its target are protected. A thread that accesses them comes to a handler of SIGSEGV, which
/// takes the protection away, so that the thread goes on, and reports a thread of the host that accesses a byte of a
/// target.
///
/// Limits    a system call that is given a protected page fails with EFAULT; a thread that never called CUDA is not
///           reported.
/// Threads   any.
class CopyTargets {
 public:
  struct Target {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    int device = 0;
  };

  /// `report` is called by the thread that uses a target too early, once for each.
  explicit CopyTargets(std::function<void(const Target&)> report);
  ~CopyTargets();

  /// A copy was enqueued.
  void begin(const Target& target);
  /// It runs now.
  void end(std::uintptr_t address, std::size_t bytes);
  /// Protects what was accessed beside targets again; with every call of CUDA's.
  void protect_again();
  /// The memory is given back.
  void forget(std::uintptr_t address, std::size_t bytes);

  /// For the handler: whether the address may be accessed now.
  bool let_access(std::uintptr_t address);

 private:
  /// Sets the protection of the pages of a range; false if the system refuses, which has a limit of mappings.
  bool set(std::uintptr_t address, std::size_t bytes, int protection) const;

  const std::function<void(const Target&)> report_;
  const std::uintptr_t page_;
  std::mutex mutex_;
  std::vector<Target> targets_;      // under way
  std::set<std::uintptr_t> pages_;   // that were protected once, and were not given back
  std::atomic<bool> opened_{false};  // some page of a target may be accessed
};

}  // namespace gradring::simulated_gpu
