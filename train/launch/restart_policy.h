// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gradring::train {

struct RestartOptions {
  int most = 0;                                                       ///< --max-restarts
  std::chrono::milliseconds first_backoff = std::chrono::seconds(1);  ///< --backoff FIRST..LONGEST
  std::chrono::milliseconds longest_backoff = std::chrono::seconds(30);
  std::optional<std::int64_t>
      min_progress_steps{};        ///< nothing: 1, if workers report any; 0: progress is not asked for
  std::vector<int> final_codes{};  ///< exit codes that another attempt would only repeat
};

/// What follows from a failed attempt: another one after a wait, or the end and why.
struct RestartDecision {
  bool again = false;
  std::chrono::milliseconds wait{};
  std::string reason{};  ///< why not; empty where nobody asked for restarts
};

/// Decides how often, how soon and how long workers are started again. Pure: no process, no clock.
class RestartPolicy {
 public:
  explicit RestartPolicy(RestartOptions options) : options_(std::move(options)) {}

  int restarts() const { return restarts_; }

  /// After an attempt that ended with `code`; `step` is the furthest that any worker has reported, of this attempt or
  /// an earlier one, nothing if none ever did. A restart that it allows is counted.
  RestartDecision after_failure(int code, std::optional<std::int64_t> step);

 private:
  bool made_progress(std::optional<std::int64_t> step);
  std::chrono::milliseconds backoff() const;

  RestartOptions options_;
  int restarts_ = 0;
  int fruitless_ = 0;  ///< attempts in a row without progress
  std::optional<std::int64_t> furthest_;
};

}  // namespace gradring::train
