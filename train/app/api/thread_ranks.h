// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

#include "train/launch/workers/worker_environment.h"
#include "train/options/commands.h"

namespace gradring::train::api {

/// Where ranks wait for each other before they connect, and the first error of any.
///
/// Threads   any.
class JoinGate {
 public:
  explicit JoinGate(int ranks) : missing_(ranks) {}

  /// Blocks until all ranks have come, or one has failed.
  ///
  /// Errors    DeviceError if one has.
  void pass();
  void fail(std::exception_ptr error);
  /// To be called once all ranks have ended.
  void rethrow_first() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
  std::exception_ptr error_;
};

/// What a rank does. It calls `join` once it has all that it needs without the others, before it connects to them.
using RankBody = std::function<void(const WorkerEnvironment&, KeptAlive&, const std::function<void()>& join)>;

/// Runs the ranks of a run as threads: rank 0 in the caller, the others in threads of their own. They find each other by
/// a store in a private folder, as the ranks of `gradring launch` do, and are connected by the same transports.
///
/// Errors    what the first rank that failed threw. A rank that waits in `join` then fails, too; one that is connected
///           learns of it from its peer.
void run_ranks_as_threads(int ranks, const RankBody& body);

}  // namespace gradring::train::api
