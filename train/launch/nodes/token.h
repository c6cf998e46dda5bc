// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "comm/sockets/handshake.h"
#include "kernels/base/file.h"
#include "train/launch/workers/launch_options.h"
#include "train/launch/workers/private_folder.h"
#include "train/launch/workers/run_folder.h"

namespace gradring::train {

/// The secrets of a run over several nodes derive from LaunchOptions::token by SHA-256 and HMAC-SHA256, so that none is
/// ever sent. Each includes the run id, so that runs with the same token cannot connect to each other.

/// The secret by which agents authenticate each other.
///
/// Errors    InvalidArgument if the token is empty.
comm::tcp::RunToken agents_secret(const LaunchOptions& options);

/// The secret by which ranks authenticate each other in one attempt, for which the leader drew the nonce.
comm::tcp::RunToken ranks_secret(const LaunchOptions& options, const std::string& nonce);

/// 32 random bytes as 64 hexadecimal digits: a generated token, or a nonce.
std::string random_token();

enum class AgentRole { leader, follower };

/// What this agent proves to the others.
///
/// Errors    InvalidArgument if options.token is empty.
comm::tcp::Identity identity_of(const LaunchOptions& options, AgentRole role);

/// The token of a run without GRADRING_TOKEN: 32 random bytes that the leader generates and keeps in a file with mode
/// 0600 while it lives. Agents of the same user on the same host find it by run id and port.
class SharedToken {
 public:
  /// Writes options.token to the leader's run folder, and links to that.
  ///
  /// Errors    DeviceError if the file cannot be written, or RunLink's.
  SharedToken(const LaunchOptions& options, const RunFolder& folder, PrivateFolder links = PrivateFolder());

  /// The token of this run's leader while it lives and listens.
  ///
  /// Errors    DeviceError if the private folder belongs to another user, or is accessible to others.
  static std::optional<std::string> find(const LaunchOptions& options, const PrivateFolder& links = PrivateFolder());

 private:
  UniqueFd lock_;  // on the file, for this process only: its reaper holds the folder a little longer
  RunLink link_;
};

/// For an agent without a token, which can only join a leader on its own host. Accepts a host name that cannot be
/// resolved yet.
///
/// Errors    InvalidArgument if the leader is on another host.
void check_leader_is_here(const LaunchOptions& options);

}  // namespace gradring::train
