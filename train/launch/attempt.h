// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "train/launch/launcher.h"
#include "train/launch/workers.h"

namespace gradring::train {

/// How the launcher speaks to the person: a line at a time.
using Say = std::function<void(const std::string& line)>;

/// How one attempt ended.
struct AttemptEnd {
  int code = 0;                     ///< what the launcher would return
  bool regroup = false;             ///< ended so that all can start in a world of another size
  bool may_repeat = false;          ///< workers failed by themselves, in a way that may not come again
  std::vector<WorkerExit> exits{};  ///< in the order in which they were seen
};

/// The policy of one attempt: what follows from each exit, signal and deadline, from the moment when all workers run
/// until all have ended.
class Attempt {
 public:
  /// `options` must outlive it; of them, the signals that end a run and kill_grace count.
  Attempt(const LaunchOptions& options, Workers& workers, Say say)
      : options_(options), workers_(workers), say_(std::move(say)) {}

  AttemptEnd to_the_end();

 private:
  /// In kSuspecting a worker has failed that blames a peer: the peer is given time to end by itself, and to say why.
  enum class Phase { kRunning, kSuspecting, kStopping, kKilled };

  void note(WorkerExit exit);
  /// Nobody has been told to stop yet.
  bool undisturbed() const { return phase_ == Phase::kRunning || phase_ == Phase::kSuspecting; }
  void handle(int signal);
  void regroup();
  void stop(int signal);
  /// They have all been asked to leave by SIGUSR1, and one has: the run ends as by SIGTERM.
  void wait_for_the_rest();
  void stop_harder();
  void kill(const std::string& why);
  AttemptEnd conclude();

  const LaunchOptions& options_;
  Workers& workers_;
  const Say say_;
  std::vector<WorkerExit> exits_;
  Phase phase_ = Phase::kRunning;
  int interrupted_by_ = 0;      ///< the signal; there will be no other attempt
  bool failed_before_ = false;  ///< a worker had, by itself, when the signal came: that stays the cause
  bool regroup_ = false;
  bool given_up_ = false;
  std::optional<Deadline> deadline_;  ///< of the current phase; running has none
};

}  // namespace gradring::train
