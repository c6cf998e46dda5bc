// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "kernels/base/file.h"

namespace gradring::tests {

/// Forwards a port of this host to another and records the bytes, as an eavesdropper could. One connection at a time.
class RecordingProxy {
 public:
  explicit RecordingProxy(int target);

  int port() const { return port_; }
  /// All bytes forwarded, to the target and from it.
  std::string bytes() const;
  /// The lines among them that are JSON objects.
  std::vector<nlohmann::json> messages() const;

 private:
  void serve(const std::stop_token& stop);
  void forward(const std::stop_token& stop, const UniqueFd& one, const UniqueFd& other);

  int target_;
  UniqueFd listener_;
  int port_;
  mutable std::mutex mutex_;
  std::string recorded_[2];  // by direction
  std::jthread thread_;
};

}  // namespace gradring::tests
