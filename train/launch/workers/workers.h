// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <bitset>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/base/deadline.h"

namespace gradring::train {

/// How one worker ended.
struct WorkerExit {
  int rank = 0;
  pid_t pid = 0;
  int code = 0;              ///< exit code; 0 if a signal ended it
  int signal = 0;            ///< the signal that ended it, or 0
  int exec_error = 0;        ///< errno if the program could not be executed, or 0
  std::bitset<NSIG> sent{};  ///< signals that the launcher sent it
  std::string host{};        ///< empty: this one
  std::string message{};     ///< from its error file

  bool failed() const { return code != 0 || signal != 0; }
  /// The launcher's exit code for it: its code, or 128 + signal.
  int exit_code() const { return signal != 0 ? 128 + signal : code; }
  /// The launcher sent it a signal to end or to kill it.
  bool was_asked_to_end() const;
  /// It ended by a signal that the launcher sent.
  bool stopped_by_launcher() const;
  /// A forwarded SIGHUP, SIGUSR1 or SIGUSR2 made it save a checkpoint and exit with 143.
  bool left_on_request() const;
  /// It failed because a peer was lost or late: codes 161, 162.
  bool blames_peer() const;
  /// It ended with 143, but the launcher has not asked it to: ranks end together when one of them is preempted, such as
  /// by an agent that has lost its leader.
  bool followed_preemption() const;
};

/// The exit to blame, from all exits in the order seen; nullptr if none failed by itself. It is the first failure, but
/// a rank that blames a peer yields to the first that does not: the peer may take longer to end than others to notice.
/// A rank that followed a preemption yields to both, if a rank blames a peer: a lost node is the cause.
const WorkerExit* root_cause(std::span<const WorkerExit> exits);

/// "rank 1 of 4 (pid 123 on host) exited with code 7", "... was killed by signal 9 (SIGKILL)"
std::string describe(const WorkerExit& exit, int world_size);

/// Report of a failed attempt: a line per failure, root cause first, then the others in the order seen. Ranks that
/// failed like the first one or only lost a peer are named in its line. A rank that was asked to end counts as failed
/// only if it left an error message. Empty if no rank failed.
std::vector<std::string> failure_lines(std::span<const WorkerExit> exits, const std::string& program, int world_size);

/// What happened during a wait: a signal for the launcher, worker exits, or nothing before the deadline.
struct WorkerEvents {
  int signal = 0;
  std::vector<WorkerExit> exits{};  ///< by rank
  bool regroup = false;             ///< nodes joined or left: restart all in a world of another size
};

/// The one that passes first.
std::optional<Deadline> earlier(const std::optional<Deadline>& one, const std::optional<Deadline>& other);

/// Thrown by a start that waits for nodes, if a signal ends the run.
struct StartInterrupted {
  int signal = 0;
};

/// All workers of a run, as seen by the policy (attempt.h). WorkerGroup runs them on one node, Leader on several; tests
/// use workers without processes.
class Workers {
 public:
  virtual ~Workers() = default;

  /// Starts all workers of an attempt, counted from 0. None may be running.
  ///
  /// Errors    StartInterrupted; DeviceError if the system runs out of processes, files or space.
  virtual void start(int attempt) = 0;
  /// Known once they have started.
  virtual int world_size() const = 0;
  virtual bool running() const = 0;
  /// The running ones: "rank 0 (pid 123), rank 2 (pid 125)".
  virtual std::string running_names() const = 0;
  /// Waits for the next event, until the deadline if there is one.
  virtual WorkerEvents wait(std::optional<Deadline> deadline) = 0;
  /// Sends a signal to the process group of every running worker.
  virtual void send(int number) noexcept = 0;
  /// Stops the workers and this process, as Ctrl-Z does, until SIGCONT.
  virtual void suspend() = 0;
  /// The furthest step that any worker reported in any attempt.
  virtual std::optional<std::int64_t> furthest_step() const = 0;
  /// After workers blamed a peer: whether a node was lost that the run can continue without. May block for as long as
  /// it takes to detect a silent node.
  virtual bool can_continue_without_node() { return false; }
};

}  // namespace gradring::train
