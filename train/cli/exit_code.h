// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

namespace gradring::train {

/// What the process returns. Above 128: worth a retry, as Kubernetes and the launcher take it.
enum ExitCode : int {
  kOk = 0,
  kTrainingFailed = 1,
  kUsage = 2,
  kEnvironment = 3,
  kBadData = 4,
  kDiverged = 5,
  kPeerLost = 161,
  kTimeout = 162,
  kReplicasDiffer = 163,
};

/// The exit code of what was thrown.
ExitCode exit_code_of(const std::exception& error);

/// What the person at the terminal reads about it.
std::string message_of(const std::exception& error);

}  // namespace gradring::train
