// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/workers.h"

namespace gradring::train {

/// Writes one line to the user.
using Logger = std::function<void(const std::string& line)>;

/// The policy of a run: attempt after attempt, until one succeeds, the restarts are used up, or a signal stops it.
/// Reports what went wrong. Returns the exit code of the launcher.
int run_attempts(const LaunchOptions& options, Workers& workers, const Logger& log);

struct RestartDecision {
  bool again = false;
  std::chrono::milliseconds wait{};
  std::string reason{};  ///< why not; empty if restarts are disabled
};

/// Decides how often and how soon workers restart. Pure: no process, no clock.
class RestartPolicy {
 public:
  explicit RestartPolicy(RestartOptions options) : options_(std::move(options)) {}

  int restarts() const { return restarts_; }

  /// Decision after an attempt that ended with `code`. `step` is the furthest that any worker reported in any attempt,
  /// unset if none did. Counts the restart that it allows.
  RestartDecision after_failure(int code, std::optional<std::int64_t> step);

 private:
  bool made_progress(std::optional<std::int64_t> step);
  std::chrono::milliseconds backoff() const;

  RestartOptions options_;
  int restarts_ = 0;
  int without_progress_ = 0;  ///< consecutive attempts
  std::optional<std::int64_t> furthest_;
};

struct AttemptResult {
  int code = 0;                     ///< exit code if no attempt follows
  bool regroup = false;             ///< ended to restart in a world of another size
  bool retryable = false;           ///< workers failed on their own, in a way that a restart may fix
  std::vector<WorkerExit> exits{};  ///< in the order seen
};

/// The policy of one attempt, from the moment all workers run until all have ended: how to react to each exit, signal
/// and deadline.
class Attempt {
 public:
  /// Uses handled_signals and kill_grace of `options`, which must outlive it.
  Attempt(const LaunchOptions& options, Workers& workers, Logger log)
      : options_(options), workers_(workers), log_(std::move(log)) {}

  AttemptResult run();

 private:
  /// kAwaitingCause: a worker failed and blames a peer, which gets time to end on its own with its error message; or it
  /// followed a preemption of a peer.
  enum class Phase { kRunning, kAwaitingCause, kStopping, kKilled };

  void record(WorkerExit exit);
  /// No worker has been told to stop yet.
  bool undisturbed() const { return phase_ == Phase::kRunning || phase_ == Phase::kAwaitingCause; }
  void handle(int signal);
  void regroup();
  void stop(int signal);
  void await_requested_exits();
  void escalate();
  void kill(const std::string& why);
  AttemptResult conclude();

  const LaunchOptions& options_;
  Workers& workers_;
  const Logger log_;
  std::vector<WorkerExit> exits_;
  Phase phase_ = Phase::kRunning;
  int interrupted_by_ = 0;             ///< the signal that ended the run; no attempt follows
  int interrupts_ = 0;                 ///< SIGINTs received; the second one kills
  bool failed_before_signal_ = false;  ///< a worker failed on its own before the signal: it stays the cause
  bool regroup_ = false;
  bool given_up_ = false;
  std::optional<Deadline> deadline_;  ///< of the current phase; unset while running
};

}  // namespace gradring::train
