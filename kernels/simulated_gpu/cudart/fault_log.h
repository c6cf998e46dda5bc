// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace gradring::simulated_gpu {

/// What kernels and calls did that they must not. Each is printed to stderr once, however often it happens, and kept.
///
/// Threads   any.
class FaultLog {
 public:
  void add(const std::string& fault);
  /// In the order in which they were seen first.
  std::vector<std::string> all() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> faults_;
  std::set<std::string> known_;
};

}  // namespace gradring::simulated_gpu
