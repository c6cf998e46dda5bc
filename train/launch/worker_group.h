// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kernels/runtime/deadline.h"
#include "train/launch/guard.h"
#include "train/launch/launcher.h"
#include "train/launch/run_folder.h"
#include "train/launch/signal_scope.h"
#include "train/launch/worker_process.h"

namespace gradring::train {

/// What poll() found: a signal for the launcher, workers that have ended, or neither when the deadline passed first.
struct WorkerEvents {
  int signal = 0;
  std::vector<WorkerExit> exits;  ///< by rank
};

/// All workers of a run on this node, with their folder and their guard: the mechanism of the launcher, without its
/// policy. When it goes, whatever still runs is killed.
class WorkerGroup {
 public:
  /// Starts all workers.
  ///
  /// Errors    DeviceError if the system has no more processes, files or space to give.
  explicit WorkerGroup(const LaunchOptions& options);
  ~WorkerGroup();

  bool running() const;
  /// "rank 0 (pid 123), rank 2 (pid 125)": those that run.
  std::string running_names() const;

  /// Waits for the next event: until the deadline, or for as long as the workers run.
  WorkerEvents wait(std::optional<Deadline> deadline);
  /// Sends a signal to every worker that runs, with its whole process group.
  void send(int number) noexcept;
  /// Stops the workers and this process, as Ctrl-Z does, until it is continued.
  void suspend();

 private:
  /// For the destructor and a constructor that fails: takes no memory, reads no error files, and does not wait for what
  /// the kernel holds on to.
  void kill_all() noexcept;
  WorkerCommand command_of(const LaunchOptions& options, int local_rank) const;
  WorkerExit reap(WorkerProcess& worker);

  SignalScope signals_;
  RunFolder folder_;
  Guard guard_;
  std::vector<WorkerProcess> workers_;
};

}  // namespace gradring::train
