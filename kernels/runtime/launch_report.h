// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// One launch of a kernel, and what it takes of the device.
struct LaunchReport {
  std::string kernel;                    ///< with its template arguments: "relu_forward_flat_kernel<float>"
  std::size_t blocks = 0;                ///< of the grid
  std::size_t threads = 0;               ///< of a block
  std::size_t dynamic_shared_bytes = 0;  ///< of a block, as the launch asked for them

  /// What a compiler gave the kernel, and how much of a multiprocessor that leaves it.
  struct Resources {
    int registers = 0;                    ///< of a thread
    std::size_t local_bytes = 0;          ///< of a thread: what found no register
    std::size_t static_shared_bytes = 0;  ///< of a block
    int resident_warps = 0;               ///< that a multiprocessor holds of this launch at once
    int most_warps = 0;                   ///< that it can hold
  };
  std::optional<Resources> resources{};  ///< of a GPU; none on a CPU
};

/// Receives a report of every kernel launched on a stream: Stream::observe_launches.
class LaunchObserver {
 public:
  virtual ~LaunchObserver() = default;
  /// By the thread that launched, when the launch is enqueued.
  virtual void launched(const LaunchReport& report) = 0;
};

/// Records the launches on a stream during its lifetime, then restores the observer from before.
///
/// Example   tests/kernels/simt/launch_test.cpp
class LaunchLog final : public LaunchObserver {
 public:
  explicit LaunchLog(Stream& stream) : stream_(stream), before_(stream.launch_observer()) {
    stream_.observe_launches(this);
  }
  ~LaunchLog() override { stream_.observe_launches(before_); }
  LaunchLog(const LaunchLog&) = delete;
  LaunchLog& operator=(const LaunchLog&) = delete;

  void launched(const LaunchReport& report) override { launches_.push_back(report); }
  /// In the order in which they were enqueued.
  const std::vector<LaunchReport>& launches() const { return launches_; }

 private:
  Stream& stream_;
  LaunchObserver* before_;
  std::vector<LaunchReport> launches_;
};

}  // namespace gradring::kernels
