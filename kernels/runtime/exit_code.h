// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring {

/// Exit codes of gradring processes. After those above 128 a retry may succeed.
enum ExitCode : int {
  kOk = 0,
  kTrainingFailed = 1,
  kUsage = 2,
  kEnvironment = 3,
  kBadData = 4,
  kDiverged = 5,
  kCannotExecute = 126,  ///< the launcher's, as in a shell: the program cannot be executed
  kNotFound = 127,       ///< the launcher's, as in a shell: the program does not exist
  kBrokenPipe = 141,     ///< the reader closed standard output (128 + SIGPIPE)
  kPreempted = 143,      ///< after a checkpoint, on request (128 + SIGTERM)
  kPeerLost = 161,
  kTimeout = 162,
  kReplicasDiffer = 163,
};

/// An error that carries the exit code of the process that it ends.
class HasExitCode {
 public:
  virtual ExitCode exit_code() const noexcept = 0;

 protected:
  ~HasExitCode() = default;
};

/// A second base of error classes: `class PeerLost : public CommError, public ExitsWith<kPeerLost>`.
template <ExitCode kCode>
class ExitsWith : public HasExitCode {
 public:
  ExitCode exit_code() const noexcept override { return kCode; }

 protected:
  ~ExitsWith() = default;
};

}  // namespace gradring
