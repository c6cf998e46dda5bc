// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/runtime/launch_report.h"
#include "kernels/runtime/stream.h"

namespace gradring::kernels {

/// Writes down what is launched on a stream as long as it lives; whoever observed before does so again afterwards.
///
/// Example   tests/kernels/simt/launch_report_test.cpp
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
