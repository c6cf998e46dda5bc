// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <bitset>
#include <span>
#include <string>

namespace gradring::train {

/// How one worker ended, and what it said.
struct WorkerExit {
  int rank = 0;
  pid_t pid = 0;
  int code = 0;              ///< what it returned; 0 if a signal ended it
  int signal = 0;            ///< the signal that ended it, or 0
  int exec_error = 0;        ///< errno if its program could not be executed, or 0
  std::bitset<NSIG> sent{};  ///< the signals that the launcher had sent it
  std::string host{};        ///< where it ran; empty: on this one
  std::string message{};     ///< from its error file

  bool failed() const { return code != 0 || signal != 0; }
  /// What the launcher returns on its behalf: the code, or 128 + signal.
  int exit_code() const { return signal != 0 ? 128 + signal : code; }
  /// The launcher had asked it to end, or killed it.
  bool was_asked_to_end() const;
  /// It ended as the launcher told it to.
  bool stopped_by_launcher() const;
  /// A forwarded SIGHUP, SIGUSR1 or SIGUSR2 made it save a checkpoint and exit with 143.
  bool left_on_request() const;
  /// It failed because a peer was lost or late: 161, 162.
  bool blames_a_peer() const;
};

/// Of all exits, in the order in which they were seen, the one to blame; nullptr if all is well or only the launcher's
/// own signals ended them. The first failure, but one that blames a peer yields to the first that does not: the peer
/// itself may take longer to be gone than the others to notice.
const WorkerExit* root_cause(std::span<const WorkerExit> exits);

/// "rank 1 of 4 (pid 123 on host) exited with code 7", "... was killed by signal 9 (SIGKILL)"
std::string describe(const WorkerExit& exit, int world_size);

}  // namespace gradring::train
