// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/runtime/deadline.h"
#include "train/launch/worker_exit.h"

namespace gradring::train {

/// What happened while the launcher waited: a signal for it, workers that have ended, or neither when the deadline
/// passed first.
struct WorkerEvents {
  int signal = 0;
  std::vector<WorkerExit> exits{};  ///< by rank
  bool regroup = false;             ///< a node has come or gone: all have to start again in a world of another size
};

/// Thrown by a start that has to wait, when a signal ends the run meanwhile.
struct StartInterrupted {
  int signal = 0;
};

/// All workers of a run, as the launcher's policy sees them. WorkerGroup is the real one; tests have theirs.
class Workers {
 public:
  virtual ~Workers() = default;

  /// Starts all of them, for the `attempt`-th time from 0. None runs then.
  ///
  /// Errors    StartInterrupted; DeviceError if the system has no more processes, files or space to give.
  virtual void start(int attempt) = 0;
  /// How many there are; known once they have been started.
  virtual int world_size() const = 0;
  virtual bool running() const = 0;
  /// "rank 0 (pid 123), rank 2 (pid 125)": those that run.
  virtual std::string running_names() const = 0;
  /// Waits for the next event: until the deadline, or for as long as it takes.
  virtual WorkerEvents wait(std::optional<Deadline> deadline) = 0;
  /// Sends a signal to every worker that runs, with its whole process group.
  virtual void send(int number) noexcept = 0;
  /// Stops the workers and this process, as Ctrl-Z does, until it is continued.
  virtual void suspend() = 0;
  /// The furthest step that any worker has reported, in any attempt.
  virtual std::optional<std::int64_t> furthest_step() const = 0;
  /// After workers have blamed a peer: whether that is because a node has gone, and the rest can go on without it. May take
  /// as long as a node's silence takes to be noticed.
  virtual bool can_go_on_without_a_node() { return false; }
};

}  // namespace gradring::train
