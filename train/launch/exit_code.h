// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gradring::train {

/// What a process of gradring returns. Above 128: worth a retry, as Kubernetes and the launcher take it.
enum ExitCode : int {
  kOk = 0,
  kTrainingFailed = 1,
  kUsage = 2,
  kEnvironment = 3,
  kBadData = 4,
  kDiverged = 5,
  kCannotExecute = 126,  ///< the launcher's, as a shell's: the program is there, but cannot be executed
  kNotFound = 127,       ///< the launcher's: there is no such program
  kBrokenPipe = 141,     ///< the reader of the output has closed it (128 + SIGPIPE)
  kPreempted = 143,      ///< after a checkpoint, because somebody asked for it (128 + SIGTERM)
  kPeerLost = 161,
  kTimeout = 162,
  kReplicasDiffer = 163,
};

}  // namespace gradring::train
