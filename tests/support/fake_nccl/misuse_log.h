// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace gradring::tests {

/// Descriptions of calls after which a GPU or NCCL would hang or compute wrongly, without reporting it.
///
/// Threads   safe.
class MisuseLog {
 public:
  void note(std::string what) {
    const std::lock_guard lock(mutex_);
    noted_.push_back(std::move(what));
  }
  /// All since the last call.
  std::vector<std::string> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(noted_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> noted_;
};

}  // namespace gradring::tests
